-- A worker that only claims recovers crashed work: no process is special.
begin;
select plan(7);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"ladder": ["5 s"], "jitter": 0}');
select rdq.create_queue('other');
select rdq.submit('q', 'h', 'x') as task \gset
select rdq.submit('other', 'h', 'x') as other \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.claim_one('other');
select pg_temp.pass('1 hour');

select is_empty(
  $$ select * from rdq.claim('{q}', 'tester') $$, 'the claim that takes it back does not get it at once'
);
select is(pg_temp.history_of(:'task'), '1 LEASE_EXPIRED', 'but it is recorded as vanished');
select is(pg_temp.status_of(:'task'), 'PENDING', 'and waits');
select is(pg_temp.status_of(:'other'), 'IN_FLIGHT', 'a queue that was not named is left alone');
select pg_temp.pass('5 s');
select is(row(attempt_no, attempt_count)::text, '(2,2)', 'after its rung the next claim has it')
from rdq.claim('{q}', 'tester');
select is(rdq.complete(:'task_id', :'claim_token'), false, 'and the lost one has nothing to report');
select is(pg_temp.status_of(:'task'), 'IN_FLIGHT', 'the task is with its new holder');

select * from finish();
rollback;
