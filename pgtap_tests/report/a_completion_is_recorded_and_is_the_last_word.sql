begin;
select plan(6);
\ir ../helpers/common.psql

select rdq.create_queue('q', '{"keep_succeeded": "forever"}');
select rdq.submit('q', 'h', 'x') as task \gset
select task_id, claim_token, claimed_at from rdq.claim('{q}', 'worker-7', code_version => 'v1.2') \gset

select ok(rdq.complete(:'task_id', :'claim_token'), 'the completion counts');
select results_eq(
  format('select attempt_no, life, outcome, error_class, error_type, message, stack, detail, runner, code_version, started_at from rdq.history(%L)', :'task'),
  format('select 1, 0, ''SUCCEEDED'', null, null, null, null, null::jsonb, ''worker-7'', ''v1.2'', %L::timestamptz', :'claimed_at'),
  'it is an attempt without an error'
);
select is(
  row(t.status, t.attempt_count, t.next_attempt_at, t.lease_expires_at, t.dead_reason, t.last_error_type)::text,
  '(SUCCEEDED,1,,,,)',
  'the task has succeeded'
)
from rdq.tasks t;
select is(t.finished_at, h.finished_at, 'when the attempt ended') from rdq.tasks t, rdq.history(:'task') h;
select ok(not rdq.complete(:'task_id', :'claim_token'), 'a second completion is stale');
select is(
  (select count(*) from rdq.due) + (select count(*) from rdq.lease) + (select count(*) from rdq.dead), 0::bigint,
  'no ticket is left'
);

select * from finish();
rollback;
