-- Two runs of one task overlapped; the second ended it, then the first speaks.
begin;
select plan(14);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 2}');
select rdq.submit('q', 'h', 'x') as task \gset
select * from pg_temp.claim_one('q') \gset first_
select pg_temp.pass('1 day');
select rdq.reclaim();
select pg_temp.pass('1 day');
select * from pg_temp.claim_one('q') \gset second_
select is(f.status, 'DEAD', 'the second holder fails the last attempt')
from rdq.fail(:'task', :'second_claim_token', 'Down', error_class => 'TRANSIENT') f;
select is(pg_temp.history_of(:'task'), '1 LEASE_EXPIRED, 2 TRANSIENT', 'two attempts are recorded');
select (select count(*) from rdq.audit) as audited \gset

select is(row(f.status, f.next_attempt_at, f.dead_reason, f.stale)::text, '(DEAD,,,t)', 'a failure of the first is stale')
from rdq.fail(:'task', :'first_claim_token', 'Down', error_class => 'TRANSIENT') f;
select ok(not rdq.complete(:'task', :'first_claim_token'), 'so is its completion');
select is_empty(
  format('select rdq.heartbeat(array[%L]::uuid[], array[%L]::uuid[])', :'task', :'first_claim_token'),
  'its heartbeat is not answered'
);
select is_empty(
  format('select rdq.release(array[%L]::uuid[], array[%L]::uuid[])', :'task', :'first_claim_token'), 'nor its release'
);
select is(row(r.status, r.stale)::text, '(DEAD,t)', 'a batch says the same')
from rdq.report(array[:'task']::uuid[], array[:'first_claim_token']::uuid[], array[null]::jsonb[]) r;
select is(
  pg_temp.history_of(:'task'), '1 LEASE_EXPIRED (late FAILED), 2 TRANSIENT',
  'no attempt is added; what came late is noted'
);
select is(row(status, dead_reason)::text, '(DEAD,EXHAUSTED)', 'the task stays dead') from rdq.tasks;
select is(count(*), :'audited'::bigint, 'and nothing is audited as if it had happened') from rdq.audit;
select is(rdq.complete(:'task', :'second_claim_token'), false, 'the second holder cannot change its mind either');
select is(
  pg_temp.history_of(:'task'), '1 LEASE_EXPIRED (late FAILED), 2 TRANSIENT', 'an attempt that was reported stays so'
);

-- The queue is not disturbed.
select rdq.submit('q', 'h', 'x') as other \gset
select is(task_id, :'other', 'the queue goes on') from rdq.claim('{q}', 'tester', 10);

-- A token of an earlier life is as stale as any.
select status from rdq.redrive(:'task');
select pg_temp.claim_one('q');
select is(rdq.complete(:'task', :'second_claim_token'), false, 'a token of an earlier life does not end the next');

select * from finish();
rollback;
