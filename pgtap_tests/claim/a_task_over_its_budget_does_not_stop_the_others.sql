-- One ticket that should not be there, however it came there: it is buried, and the rest is handed out.
begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3}');
select rdq.submit('q', 'bad', 'x') as bad \gset
select count(rdq.submit('q', 'good', 'x')) from generate_series(1, 9);
-- Three attempts of three are spent, and yet the task waits.
insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, error_class, started_at, finished_at)
select :'bad', n, 0, 'q', 'FAILED', 'TRANSIENT', clock_timestamp(), clock_timestamp()
from generate_series(1, 3) n;
update rdq.due set has_history = true where task_id = :'bad';

select results_eq(
  $$ select handler, count(*) from rdq.claim('{q}', 'tester', 10) group by handler $$, $$ values ('good', 9::bigint) $$,
  'the nine others are claimed'
);
select is(row(status, dead_reason)::text, '(DEAD,EXHAUSTED)', 'it is a dead letter')
from rdq.tasks
where task_id = :'bad';
select is(pg_temp.history_of(:'bad'), '1 TRANSIENT, 2 TRANSIENT, 3 TRANSIENT', 'without a fourth attempt');

-- The ordinary way to get there: the budget was lowered while the task waited.
select rdq.submit('q', 'lowered', 'x') as lowered \gset
select pg_temp.fail_one('q');
select rdq.alter_queue('q', '{"max_attempts": 1}');
select pg_temp.pass('1 hour');
select is_empty(
  $$ select * from rdq.claim('{q}', 'tester', 10) $$, 'a budget that was lowered below what is spent is spent'
);
select is(row(status, dead_reason, attempt_count)::text, '(DEAD,EXHAUSTED,1)', 'and the task is dead')
from rdq.tasks
where task_id = :'lowered';
select is(count(*), 2::bigint, 'both are dead letters') from rdq.dead_letters where dead_reason = 'EXHAUSTED';

select * from finish();
rollback;
