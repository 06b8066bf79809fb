begin;
select plan(8);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3}');
select rdq.submit('q', 'h', 'x') as task \gset
select * from rdq.claim('{q}', 'worker-7', code_version => 'v1') \gset

select results_eq(
  format('select rdq.release(array[%L]::uuid[], array[%L]::uuid[], ''SIGTERM'')', :'task_id', :'claim_token'),
  format('select %L::uuid', :'task'),
  'the release is answered with the task'
);
select is(row(status, attempt_count)::text, '(PENDING,0)', 'which waits, with nothing spent') from rdq.tasks;
select ok(next_attempt_at <= clock_timestamp(), 'and is due now: a release waits for no rung') from rdq.tasks;
select results_eq(
  format('select attempt_no, outcome, message, error_class, runner, code_version from rdq.history(%L)', :'task'),
  $$ values (1, 'RELEASED', 'SIGTERM', null, 'worker-7', 'v1') $$,
  'it is recorded, with its reason'
);
select is(row(attempt_no, attempt_count)::text, '(2,1)', 'the next attempt has the next number, and is the first of the budget')
from rdq.claim('{q}', 'tester');

-- Without a reason.
select rdq.release(array_agg(task_id), array_agg(claim_token)) from rdq.lease;
select is(pg_temp.history_of(:'task'), '1 RELEASED, 2 RELEASED', 'a release needs no reason');
select is(message, null, 'and none is invented') from rdq.history(:'task') where attempt_no = 2;
select is(pg_temp.fail_one('q'), 'PENDING', 'and it goes on like any task');

select * from finish();
rollback;
