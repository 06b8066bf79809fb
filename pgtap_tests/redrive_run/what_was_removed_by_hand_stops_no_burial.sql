begin;
\ir ../helpers/common.psql
select plan(3);

-- Somebody removed a task by hand while a redrive waited for its end, and it was submitted again with its id.
select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select rdq.redrive_where(queue => 'q');
delete from rdq.due;
delete from rdq.attempt;
delete from rdq.task;
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}', task_id => :'id');
select rdq.redrive_where(queue => 'q');
select is(count(*), 2::bigint, 'two redrives wait for one life') from rdq.redriven where outcome is null;

select lives_ok(format('select rdq.cancel(%L)', :'id'), 'it can die');
select is(count(*), 1::bigint, 'and is a dead letter') from rdq.dead_letters;

select * from finish();
rollback;
