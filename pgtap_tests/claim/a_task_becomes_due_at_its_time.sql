begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', run_at => clock_timestamp() + interval '6 hours') as task \gset

select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'a task for later is not claimed');
select is(count(*), 0::bigint, 'and holds no lease meanwhile') from rdq.lease;
select pg_temp.pass('5 hours 59 minutes');
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'a minute before neither');
select pg_temp.pass('1 minute');
select due_at as scheduled from rdq.due \gset
create temp table claimed as select * from rdq.claim('{q}', 'tester');
select is(task_id, :'task', 'but when it is time') from claimed;
select is(due_at, :'scheduled', 'and the claim says when that was') from claimed;
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'once');

select * from finish();
rollback;
