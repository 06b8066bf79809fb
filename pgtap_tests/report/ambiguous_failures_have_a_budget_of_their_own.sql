begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 8, "ambiguous_attempts": 2}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.failed_as(error_class text) returns text
language plpgsql
as $$
begin
  perform pg_temp.pass('1 day');
  return pg_temp.fail_one('q', error_class);
end
$$;

select is(pg_temp.failed_as('AMBIGUOUS'), 'PENDING', 'one ambiguous failure of two');
select is(pg_temp.failed_as('TRANSIENT'), 'PENDING', 'a transient one does not count there');
select is(pg_temp.failed_as('TRANSIENT'), 'PENDING', 'nor another');
select is(pg_temp.failed_as('AMBIGUOUS'), 'DEAD', 'the second ambiguous one, not in a row, is the last');
select is(row(dead_reason, attempt_count)::text, '(AMBIGUOUS,4)', 'four attempts of eight were spent')
from rdq.tasks;
select is(pg_temp.history_of(:'task'), '1 AMBIGUOUS, 2 TRANSIENT, 3 TRANSIENT, 4 AMBIGUOUS', 'and recorded');

select * from finish();
rollback;
