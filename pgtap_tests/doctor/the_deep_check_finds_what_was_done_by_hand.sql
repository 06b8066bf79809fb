begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
select plan(10);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01') as kept from generate_series(1, 3);
select rdq.submit('q', 'h', 'x', task_id => '00000000-0000-0000-0000-00000000000a', run_at => '2999-01-01') as id \gset
savepoint whole;

select is(pg_temp.found('q', deep => true), null, 'nothing was done');
delete from rdq.task t where t.id = :'id';
select is(
  pg_temp.found('q', deep => true),
  'error: 1 ticket without a task, such as 00000000-0000-0000-0000-00000000000a: rows of rdq.task were removed by hand',
  'a task that was removed');
select is(pg_temp.found('q'), null, 'which takes the deep check');
rollback to whole;

delete from rdq.due d where d.task_id = :'id';
select is(t.status, null, 'without a ticket a task has no state') from rdq.tasks t where t.task_id = :'id';
select is(
  pg_temp.found('q', deep => true),
  'error: 1 task has no ticket and did not succeed, such as 00000000-0000-0000-0000-00000000000a: tickets were removed by hand',
  'a ticket that was removed');
select is(pg_temp.found('q'), null, 'which takes the deep check');
rollback to whole;

delete from rdq.due;
insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, started_at, finished_at)
select t.id, 1, 0, 'q', 'SUCCEEDED', clock_timestamp(), clock_timestamp() from rdq.task t where t.id <> :'id';
select matches(pg_temp.found('q', deep => true), '^error: 1 task has no ticket', 'what has succeeded needs none');
rollback to whole;

insert into rdq.lease (task_id, claim_token, queue, life, runner, claimed_at, expires_at)
values (:'id', gen_random_uuid(), 'q', 0, 'r', clock_timestamp(), '2999-01-01');
select is(
  pg_temp.found('q', deep => true),
  'error: task 00000000-0000-0000-0000-00000000000a has 2 tickets: one was written by hand',
  'a ticket too many');
select is(pg_temp.found('q'), null, 'which takes the deep check');
select is(count(*), 1::bigint, 'said once') from rdq.doctor(deep => true);

select * from finish();
rollback;
