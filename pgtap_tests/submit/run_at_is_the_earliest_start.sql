begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(6);

select rdq.create_queue('q');

select clock_timestamp() as before \gset
select rdq.submit('q', 'h', 'x') as id \gset
select ok(t.next_attempt_at between :'before' and clock_timestamp(), 'by default: now')
from rdq.tasks t where t.task_id = :'id';
select rdq.submit('q', 'h', 'x', run_at => '2001-01-01') as id \gset
select ok(t.next_attempt_at between :'before' and clock_timestamp(), 'what is past is now: it jumps no queue')
from rdq.tasks t where t.task_id = :'id';
select is(count(*), 2::bigint, 'both can be claimed') from rdq.claim(array['q'], 'tester', max_tasks => 9);

select clock_timestamp() + interval '6 hours' as run_at \gset
select rdq.submit('q', 'h', 'x', run_at => :'run_at') as id \gset
select is(t.next_attempt_at, :'run_at', 'not before run_at') from rdq.tasks t where t.task_id = :'id';
select is_empty($$ select * from rdq.claim(array['q'], 'tester') $$, 'nobody holds it meanwhile');
select pg_temp.pass('6 hours');
select is(c.task_id, :'id', 'then it is claimed') from rdq.claim(array['q'], 'tester') c;

select * from finish();
rollback;
