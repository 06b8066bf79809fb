begin;
\ir ../helpers/common.psql
select plan(16);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
set local rdq.actor = 'ada';
select rdq.cancel(:'id', 'wrong customer');

select is(t.status || ' ' || t.dead_reason, 'DEAD CANCELLED', 'it is dead') from rdq.tasks t where t.task_id = :'id';
select unnest(array[
  is(h.outcome, 'RELEASED', 'the attempt is in the history'),
  ok(h.message like '%ada%wrong customer%', 'with who took it and why: ' || h.message),
  is(h.late_outcome, null, 'nothing was reported yet')
])
from rdq.history(:'id') h;
select pg_temp.stored() as before \gset
select is_empty(
  format('select * from rdq.heartbeat(array[%L::uuid], array[%L::uuid])', :'task_id', :'claim_token'),
  'the next heartbeat says that it is lost');
select is(
  count(*), 0::bigint, 'a release too')
from rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid]);

select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.cancel(:'id');
select is(rdq.complete(:'task_id', :'claim_token'), false, 'a completion is stale');
select is(h.late_outcome, 'SUCCEEDED', 'and noted on the attempt') from rdq.history(:'id') h;
select ok(h.late_at between h.finished_at and clock_timestamp(), 'with its time') from rdq.history(:'id') h;
select is(pg_temp.status_of(:'id'), 'DEAD', 'the task stays dead');

select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.cancel(:'id');
select is(f.stale::text || ' ' || f.status, 'true DEAD', 'a failure is stale and told the state')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;
select is(h.late_outcome, 'FAILED', 'and noted') from rdq.history(:'id') h;
select is(count(*), 1::bigint, 'no attempt was added') from rdq.history(:'id') h;

select rdq.redrive(:'id');
select is(c.attempt_no, 2, 'redriven it is numbered on') from rdq.claim(array['q'], 'tester') c;
select is(rdq.complete(:'task_id', :'claim_token'), false, 'the old token is stale for ever');
select is(pg_temp.status_of(:'id'), 'IN_FLIGHT', 'and does not end the new claim');

select * from finish();
rollback;
