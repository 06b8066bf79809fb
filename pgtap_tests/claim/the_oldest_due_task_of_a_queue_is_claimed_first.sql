begin;
select plan(4);

select rdq.create_queue('q');
select rdq.submit('q', 'third', 'x', run_at => clock_timestamp() - interval '1 minute') as id \gset
select rdq.submit('q', 'future', 'x', run_at => clock_timestamp() + interval '1 minute');
select rdq.submit('q', 'first', 'x') as first \gset
select rdq.submit('q', 'second', 'x') as second \gset
update rdq.due set due_at = clock_timestamp() - interval '1 hour' where task_id = :'first';
update rdq.due set due_at = clock_timestamp() - interval '30 minutes' where task_id = :'second';

select is(handler, 'first', 'the one that has been due longest') from rdq.claim('{q}', 'tester');
select is(handler, 'second', 'then the next') from rdq.claim('{q}', 'tester');
select is(handler, 'third', 'then the last that is due') from rdq.claim('{q}', 'tester');
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'what is not yet due is not claimed');

select * from finish();
rollback;
