begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(6);

select rdq.create_queue('q', '{"ladder": [0], "vanish_limit": 9}');
select rdq.submit('q', 'h', 'x', error => '{"type": "Origin", "class": "TRANSIENT"}') as id \gset
select is(count(*), 1::bigint, 'what was handed over') from rdq.history(:'id');

select task_id, claim_token from rdq.claim(array['q'], 'worker 1', code_version => 'v1') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'a message', 'a stack', '{"status": 503}', 'TRANSIENT');
select task_id, claim_token from rdq.claim(array['q'], 'worker 2') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid], 'shutdown');
select task_id, claim_token from rdq.claim(array['q'], 'worker 3') \gset
select pg_temp.pass('1 hour');
select rdq.reclaim();
select rdq.complete(:'task_id', :'claim_token');
select task_id, claim_token from rdq.claim(array['q'], 'worker 4') \gset
select rdq.fail(:'task_id', :'claim_token', 'F', error_class => 'PERMANENT');
select rdq.redrive(:'id');
select task_id, claim_token from rdq.claim(array['q'], 'worker 5', code_version => 'v2') \gset
select rdq.complete(:'task_id', :'claim_token');

select results_eq(
  format($$
    select attempt_no, life, outcome, error_class, error_type, runner, code_version, late_outcome
    from rdq.history(%L)
  $$, :'id'),
  $$
    values
      (1, 0, 'FAILED', 'TRANSIENT', 'Origin', null, null, null),
      (2, 0, 'FAILED', 'TRANSIENT', 'E', 'worker 1', 'v1', null),
      (3, 0, 'RELEASED', null, null, 'worker 2', null, null),
      (4, 0, 'LEASE_EXPIRED', null, null, 'worker 3', null, 'SUCCEEDED'),
      (5, 0, 'FAILED', 'PERMANENT', 'F', 'worker 4', null, null),
      (6, 1, 'SUCCEEDED', null, null, 'worker 5', 'v2', null)
  $$,
  'oldest first, one row each');
select is(
  array[h.message, h.stack, h.detail::text], '{a message,a stack,"{\"status\": 503}"}', 'with all that was reported')
from rdq.history(:'id') h where h.attempt_no = 2;
select ok(
  bool_and(h.finished_at >= h.started_at) and count(*) = 5, 'each began and ended')
from rdq.history(:'id') h where h.started_at is not null;

select throws_ok(
  $$ select * from rdq.history('01890000-0000-7000-8000-000000000001') $$, 'RD003', null, 'a task that does not exist');
select throws_ok($$ select * from rdq.history(null) $$, 'RD003', null, 'null');

select * from finish();
rollback;
