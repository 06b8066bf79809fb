begin;
select plan(5);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"lease": "90 s"}');
select rdq.submit(
  'q', 'charge', convert_to(E'\u00e9\u20ac {"b": 1, "a": 2, "a": 3}', 'UTF8') || '\x00ff',
  '{"traceparent": "00-1-2-01"}',
  give_up_at => '2999-01-01 UTC', handler_version => 'v3', content_type => 'application/x-odd'
) as task \gset
select clock_timestamp() as before \gset
create temp table claimed as select * from rdq.claim('{q}', 'worker-7', code_version => 'v1');

select pg_temp.rows_are(
  'select queue, handler, handler_version, content_type, headers, attempt_no, attempt_count, redrive_count, give_up_at from claimed',
  $$
    values ('q', 'charge', 'v3', 'application/x-odd', '{"traceparent": "00-1-2-01"}'::jsonb, 1, 1, 0,
      timestamptz '2999-01-01 UTC')
  $$,
  'what to run, and where in its life it is'
);
select is(
  row(task_id, payload)::text,
  row(:'task'::uuid, convert_to(E'\u00e9\u20ac {"b": 1, "a": 2, "a": 3}', 'UTF8') || '\x00ff')::text,
  'the payload byte for byte'
)
from claimed;
select ok(
  claimed_at between :'before' and clock_timestamp() and claimed_at > transaction_timestamp()
  and lease_expires_at = claimed_at + interval '90 s' and created_at <= due_at and due_at < claimed_at,
  'the lease is that of the queue, and starts at the clock'
)
from claimed;
select pg_temp.rows_are(
  $$ select task_id, claim_token, queue, runner, code_version, claimed_at, expires_at from rdq.lease $$,
  $$ select task_id, claim_token, queue, 'worker-7', 'v1', claimed_at, lease_expires_at from claimed $$,
  'the lease that is stored says the same, and who has it'
);
select is(row(status, attempt_count, runner)::text, '(IN_FLIGHT,1,worker-7)', 'the task is in flight')
from rdq.tasks;

select * from finish();
rollback;
