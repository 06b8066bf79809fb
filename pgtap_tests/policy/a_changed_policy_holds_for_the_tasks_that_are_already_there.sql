begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"backoff_base": "10 s", "jitter": 0}');
select rdq.submit('q', 'h', 'x') as task \gset

select rdq.alter_queue('q', '{"ladder": ["3 hours"]}');
select is(pg_temp.fail_one('q'), 'PENDING', 'a task that was submitted before fails');
select ok(
  next_attempt_at > clock_timestamp() + interval '2 hours', 'and waits by the ladder of now'
)
from rdq.tasks;

select pg_temp.pass('1 day');
select rdq.alter_queue('q', '{"error_rules": [{"match": "Down", "class": "TRANSIENT"}], "ladder": null}');
select is(pg_temp.fail_one('q', null), 'PENDING', 'a rule that is new');
select is(last_error_class, 'TRANSIENT', 'classifies the next failure') from rdq.tasks;

select pg_temp.pass('1 day');
select rdq.alter_queue('q', '{"max_attempts": 3}');
select is(pg_temp.fail_one('q'), 'DEAD', 'and a smaller budget is used up');
select is(dead_reason, 'EXHAUSTED', 'for what it is') from rdq.tasks;

select * from finish();
rollback;
