-- It happened before rdq: it takes a number and the first rung, and spends nothing.
begin;
select plan(11);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 2, "ambiguous_attempts": 2, "backoff_base": "10 s", "jitter": 0}');
select rdq.submit('q', 'h', 'x', error => '{
  "type": "http.503", "message": "Service Unavailable", "stack": "line 1", "class": "AMBIGUOUS", "at": "2026-01-31T12:00:00Z"
}') as task \gset

select results_eq(
  format('select attempt_no, life, outcome, error_class, error_type, message, stack, runner, started_at, finished_at from rdq.history(%L)', :'task'),
  $$
    values (1, 0, 'FAILED', 'AMBIGUOUS', 'http.503', 'Service Unavailable', 'line 1', null, null::timestamptz,
      timestamptz '2026-01-31T12:00:00Z')
  $$,
  'it is there as it was given, with its time and without a start'
);
select is(row(status, attempt_count)::text, '(PENDING,0)', 'the task waits, with nothing spent')
from rdq.tasks;
select ok(
  next_attempt_at between transaction_timestamp() + interval '10 s' and clock_timestamp() + interval '10 s',
  'for the first rung'
)
from rdq.tasks;
select pg_temp.pass('10 s');
select is(row(attempt_no, attempt_count)::text, '(2,1)', 'the first claim is attempt 2, the first of the budget')
from rdq.claim('{q}', 'tester');
select is(f.status, 'PENDING', 'one ambiguous failure of two')
from rdq.lease
cross join lateral rdq.fail(task_id, claim_token, 'Reset', error_class => 'AMBIGUOUS') f;
select ok(
  next_attempt_at > clock_timestamp() + interval '11 s' and next_attempt_at <= clock_timestamp() + interval '20 s',
  'waits the second rung'
)
from rdq.tasks;
select pg_temp.pass('1 hour');
select is(pg_temp.fail_one('q', 'AMBIGUOUS'), 'DEAD', 'the second is the last');

-- It spends nothing of the smallest budgets either.
select rdq.create_queue('small', '{"max_attempts": 1, "ambiguous_attempts": 1}');
select is(
  pg_temp.status_of(rdq.submit('small', 'h', 'x', error => '{"class": "AMBIGUOUS"}')), 'PENDING', 'an ambiguous one of one allowed'
);
select is(
  pg_temp.status_of(rdq.submit('small', 'h', 'x', error => '{"class": "TRANSIENT"}')), 'PENDING', 'nor the only attempt'
);

select rdq.submit('q', 'h', 'x', error => '{"type": "ParseError", "class": "PERMANENT"}') as permanent \gset
select is(row(status, dead_reason, attempt_count)::text, '(DEAD,PERMANENT,0)', 'a permanent one is dead at once')
from rdq.tasks
where task_id = :'permanent';
select is(pg_temp.history_of(:'permanent'), '1 PERMANENT', 'with that one attempt');

select * from finish();
rollback;
