begin;
select plan(7);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"lease": "1 minute", "backoff_base": "10 s", "jitter": 0}');
select rdq.submit('q', 'h', 'x') as task \gset
select claimed_at, lease_expires_at from rdq.claim('{q}', 'worker-7', code_version => 'v1') \gset

select pg_temp.pass('45 s');
select is_empty($$ select * from rdq.reclaim() $$, 'a lease that lives is left alone');
select pg_temp.pass('15 s');
select results_eq(
  $$ select task_id, status from rdq.reclaim() $$, format('select %L::uuid, ''PENDING''', :'task'),
  'one that has ended is taken back'
);
select results_eq(
  format('select attempt_no, life, outcome, error_class, error_type, stack, runner, code_version from rdq.history(%L)', :'task'),
  $$ values (1, 0, 'LEASE_EXPIRED', null, null, null, 'worker-7', 'v1') $$,
  'it is an attempt that vanished, and says whose it was'
);
select is(
  row(started_at, detail ->> 'lease_expired_at')::text,
  row(:'claimed_at'::timestamptz - interval '60 s', to_jsonb(:'lease_expires_at'::timestamptz - interval '60 s') #>> '{}')::text,
  'from when to when it was held'
)
from rdq.history(:'task');
select ok(
  t.next_attempt_at between h.finished_at + interval '10 s' and clock_timestamp() + interval '10 s',
  'the task waits a rung'
)
from rdq.tasks t, rdq.history(:'task') h;
select is(row(status, attempt_count)::text, '(PENDING,1)', 'and a crash has spent an attempt') from rdq.tasks;
select is_empty($$ select * from rdq.reclaim() $$, 'there is nothing left to take back');

select * from finish();
rollback;
