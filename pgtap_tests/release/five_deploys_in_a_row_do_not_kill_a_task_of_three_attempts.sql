begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3, "vanish_limit": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.deploy() returns void
language sql
begin atomic
  select rdq.release(array[c.task_id], array[c.claim_token], 'INTERRUPTED: the worker shuts down')
  from pg_temp.claim_one('q') c;
end;

select pg_temp.deploy() from generate_series(1, 5);

select is(
  pg_temp.history_of(:'task'), '1 RELEASED, 2 RELEASED, 3 RELEASED, 4 RELEASED, 5 RELEASED',
  'five attempts were interrupted'
);
select is(row(status, attempt_count, dead_reason)::text, '(PENDING,0,)', 'the task is alive, with its whole budget')
from rdq.tasks;
select ok(next_attempt_at <= clock_timestamp(), 'and due now') from rdq.tasks;
select is(row(attempt_no, attempt_count)::text, '(6,1)', 'the next worker begins its first attempt')
from rdq.claim('{q}', 'tester');

select * from finish();
rollback;
