begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3, "vanish_limit": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.numbers_of_a_claim() returns text
language plpgsql
as $$
declare
  held record;
begin
  perform pg_temp.pass('1 day');
  select * into held from rdq.claim('{q}', 'tester');
  perform f.status from rdq.fail(held.task_id, held.claim_token, 'Down', error_class => 'TRANSIENT') f;
  return format('attempt %s, %s spent, redriven %s times', held.attempt_no, held.attempt_count, held.redrive_count);
end
$$;

select is(pg_temp.numbers_of_a_claim(), 'attempt 1, 1 spent, redriven 0 times', 'the first claim');
select pg_temp.pass('1 day');
select pg_temp.vanish_one('q');
select is(pg_temp.numbers_of_a_claim(), 'attempt 3, 3 spent, redriven 0 times', 'after an attempt that vanished');
select is(pg_temp.status_of(:'task'), 'DEAD', 'then it is dead');
select status from rdq.redrive(:'task');
select is(pg_temp.numbers_of_a_claim(), 'attempt 4, 1 spent, redriven 1 times', 'after a redrive');
select rdq.release(array[task_id], array[claim_token])
from (select pg_temp.pass('1 day')) p, pg_temp.claim_one('q');
select is(
  pg_temp.numbers_of_a_claim(), 'attempt 6, 2 spent, redriven 1 times', 'a release takes a number and spends nothing'
);
select is(
  pg_temp.history_of(:'task'), '1 TRANSIENT, 2 LEASE_EXPIRED, 3 TRANSIENT, 4 TRANSIENT, 5 RELEASED, 6 TRANSIENT',
  'the numbers are those of the history'
);

select * from finish();
rollback;
