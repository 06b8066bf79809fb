begin;
select plan(12);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3, "max_releases": 2}');
select rdq.submit('q', 'h', 'x') as task \gset

-- What the task has spent after one more release.
create function pg_temp.spent_after_a_release() returns text
language plpgsql
as $$
declare
  held record;
begin
  select * into held from pg_temp.claim_one('q');
  perform rdq.release(array[held.task_id], array[held.claim_token], 'no handler "h" here');
  return (select t.status || ' ' || t.attempt_count from rdq.tasks t);
end
$$;

select is(pg_temp.spent_after_a_release(), 'PENDING 0', 'the first of two releases is given back');
select is(pg_temp.spent_after_a_release(), 'PENDING 0', 'the second too');
select is(pg_temp.spent_after_a_release(), 'PENDING 1', 'the third is recorded and spends an attempt');
select is(pg_temp.spent_after_a_release(), 'PENDING 2', 'the fourth another');
select is(pg_temp.spent_after_a_release(), 'DEAD 3', 'the fifth the last of three');
select is(dead_reason, 'UNROUTABLE', 'nobody had a use for the task') from rdq.tasks;
select is(
  pg_temp.history_of(:'task'), '1 RELEASED, 2 RELEASED, 3 RELEASED, 4 RELEASED, 5 RELEASED',
  'each of them is in the history'
);
select is(row(dead_reason, message)::text, '(UNROUTABLE,"no handler ""h"" here")', 'the dead letter tells why it was handed back')
from rdq.dead_letters;

-- A fresh budget of releases too.
select status from rdq.redrive(:'task');
select is(pg_temp.spent_after_a_release(), 'PENDING 0', 'after a redrive the first release is given back again');
select is(
  pg_temp.history_of(:'task'), '1 RELEASED, 2 RELEASED, 3 RELEASED, 4 RELEASED, 5 RELEASED, 6 RELEASED',
  'and numbered on'
);

-- Failures and surplus releases share one budget.
select rdq.create_queue('mixed', '{"max_attempts": 2, "max_releases": 0, "ladder": ["0 s"]}');
select rdq.submit('mixed', 'h', 'x') as mixed \gset
select is(pg_temp.fail_one('mixed'), 'PENDING', 'where no release is given back, one failure of two');
select rdq.release(array[task_id], array[claim_token]) from pg_temp.claim_one('mixed');
select is(row(status, dead_reason, attempt_count)::text, '(DEAD,UNROUTABLE,2)', 'and one release are all')
from rdq.tasks
where task_id = :'mixed';

select * from finish();
rollback;
