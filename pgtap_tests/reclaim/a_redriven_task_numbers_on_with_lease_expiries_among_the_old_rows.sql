-- The collision that derived attempt numbers from a counter: a redriven task's lease expires, and the row
-- would be number 1 again. The number comes from the history.
begin;
select plan(11);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3, "vanish_limit": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

-- A first life: 3 of 3, one of them vanished.
select pg_temp.fail_one('q');
select pg_temp.pass('1 day');
select pg_temp.vanish_one('q');
select pg_temp.pass('1 day');
select pg_temp.fail_one('q');
select is(row(status, dead_reason)::text, '(DEAD,EXHAUSTED)', 'a life ends') from rdq.tasks;
create temp table first_life as select * from rdq.history(:'task');

select is(row(status, redrive_count)::text, '(PENDING,1)', 'it is redriven') from rdq.redrive(:'task');
select is(row(status, attempt_count)::text, '(PENDING,0)', 'with nothing spent') from rdq.tasks;
select is(row(attempt_no, attempt_count, redrive_count)::text, '(4,1,1)', 'the next attempt is number 4, and the first of a fresh budget')
from rdq.claim('{q}', 'tester');
select pg_temp.pass('1 day');
select is(status, 'PENDING', 'its lease expires, and it is taken back') from rdq.reclaim();
select is(
  pg_temp.history_of(:'task'), '1 TRANSIENT, 2 LEASE_EXPIRED, 3 TRANSIENT, 4 LEASE_EXPIRED', 'as number 4'
);
select pg_temp.pass('1 day');
select is(pg_temp.fail_one('q'), 'PENDING', 'the second of three attempts of this life');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'DEAD', 'and the third is the last');
select is(
  pg_temp.history_of(:'task'),
  '1 TRANSIENT, 2 LEASE_EXPIRED, 3 TRANSIENT, 4 LEASE_EXPIRED, 5 TRANSIENT, 6 LEASE_EXPIRED',
  'the history has both lives, without a hole'
);
select is(string_agg(life::text, '' order by attempt_no), '000111', 'and says which is which')
from rdq.history(:'task');
select is_empty(
  $$
    select attempt_no, outcome, error_class, error_type, runner from first_life
    except
    select attempt_no, outcome, error_class, error_type, runner from rdq.attempt
  $$,
  'the old rows are as they were'
);

select * from finish();
rollback;
