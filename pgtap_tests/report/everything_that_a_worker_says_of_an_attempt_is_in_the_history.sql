begin;
select plan(6);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as task \gset
select task_id, claim_token, claimed_at from rdq.claim('{q}', 'worker-7', code_version => 'v1.2') \gset
select r.status
from rdq.fail(
  :'task_id', :'claim_token', 'http.503', 'Service Unavailable', E'line 1\nline 2', '{"status": 503}', 'TRANSIENT'
) r;

select pg_temp.rows_are(
  format('select attempt_no, life, outcome, error_class, error_type, message, stack, detail, runner, code_version from rdq.history(%L)', :'task'),
  $$
    values (1, 0, 'FAILED', 'TRANSIENT', 'http.503', 'Service Unavailable', E'line 1\nline 2', '{"status": 503}'::jsonb,
      'worker-7', 'v1.2')
  $$,
  'what failed, how, and who ran it'
);
select is(started_at, :'claimed_at', 'it began with the claim') from rdq.history(:'task');
select ok(
  finished_at > transaction_timestamp() and finished_at between started_at and clock_timestamp(),
  'and ended with the report, by the clock and not by the transaction'
)
from rdq.history(:'task');
select is(row(late_outcome, late_at)::text, '(,)', 'nothing came late') from rdq.history(:'task');

select pg_temp.rows_are(
  $$ select last_error_class, last_error_type, last_message from rdq.tasks $$,
  $$ values ('TRANSIENT', 'http.503', 'Service Unavailable') $$,
  'rdq.tasks shows the last error'
);
select is(t.next_attempt_at, d.due_at, 'and the next attempt')
from rdq.tasks t join rdq.due d using (task_id);

select * from finish();
rollback;
