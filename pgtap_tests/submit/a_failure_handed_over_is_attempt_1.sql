begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(15);

select rdq.create_queue('q', '{"jitter": 0, "ladder": ["1 minute", "10 minutes", "100 minutes"], "max_attempts": 2}');

select rdq.submit('q', 'charge', '{"order": 42}', error => '{
  "type": "TimeoutException", "message": "no answer from the bank", "stack": "at Bank.charge(Bank.java:7)",
  "class": "TRANSIENT", "at": "2026-01-31T12:00:00Z", "detail": {"offset": 7}
}') as id \gset

select results_eq(
  format($$
    select attempt_no, life, outcome, error_class, error_type, message, stack, detail, runner, code_version,
      started_at, finished_at, late_outcome
    from rdq.history(%L)
  $$, :'id'),
  $$
    values (1, 0, 'FAILED', 'TRANSIENT', 'TimeoutException', 'no answer from the bank', 'at Bank.charge(Bank.java:7)',
      '{"offset": 7}'::jsonb, null::text, null::text, null::timestamptz, '2026-01-31 12:00Z'::timestamptz, null::text)
  $$,
  'it is in the history as it was handed over');
select unnest(array[
  is(t.status, 'PENDING', 'the task waits'),
  is(t.attempt_count, 0::bigint, 'nothing of the budget is spent'),
  is(t.last_error_type, 'TimeoutException', 'its error is the last one'),
  ok(
    t.next_attempt_at between clock_timestamp() + interval '55 seconds' and clock_timestamp() + interval '1 minute',
    'the first retry waits for the first rung')
])
from rdq.tasks t where t.task_id = :'id';

select pg_temp.pass('1 minute');
select task_id, claim_token, attempt_no, attempt_count from rdq.claim(array['q'], 'tester') \gset
select is(:attempt_no, 2, 'later attempts are numbered on');
select is(:attempt_count, 1, 'and are the first of the budget');
select unnest(array[
  is(f.status, 'PENDING', 'one of two'),
  ok(
    f.next_attempt_at
      between clock_timestamp() + interval '595 seconds' and clock_timestamp() + interval '10 minutes',
    'after the first real failure comes the second rung')
])
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select pg_temp.pass('10 minutes');
select task_id, claim_token, attempt_no, attempt_count from rdq.claim(array['q'], 'tester') \gset
select is(array[:attempt_no, :attempt_count], array[3, 2], 'the second of the budget');
select is(f.dead_reason, 'EXHAUSTED', 'and the last')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;
select is(array_agg(h.attempt_no), array[1, 2, 3], 'three attempts are in the history') from rdq.history(:'id') h;

select clock_timestamp() as before \gset
select rdq.submit('q', 'charge', 'x', error => '{"message": "m"}') as id \gset
select unnest(array[
  ok(h.finished_at between :'before' and clock_timestamp(), 'without a time it was now'),
  is(h.error_class, 'AMBIGUOUS', 'without a class the default holds'),
  is(h.error_type, null, 'a type need not be given')
])
from rdq.history(:'id') h;

select * from finish();
rollback;
