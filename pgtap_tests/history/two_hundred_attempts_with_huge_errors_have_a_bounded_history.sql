begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q', '{"max_attempts": 201}');
select rdq.submit('q', 'h', 'x') as task \gset

-- 300 KB that do not compress, so that sizes are what they seem.
select string_agg(md5(n::text), '') as noise from generate_series(1, 9375) n \gset
create temp table noise as select :'noise'::text as noise;

create function pg_temp.fail_hugely(times integer) returns void
language plpgsql
as $$
declare
  huge constant text := (select n.noise from noise n);
  held record;
begin
  for i in 1 .. times loop
    perform pg_temp.pass('1 day');
    select * into held from rdq.claim('{q}', 'tester');
    perform f.status
    from rdq.fail(held.task_id, held.claim_token, huge, huge, huge, to_jsonb(huge), 'TRANSIENT') f;
  end loop;
end
$$;

select pg_temp.fail_hugely(200);

select is(count(*), 200::bigint, 'each attempt is recorded') from rdq.history(:'task');
select is(pg_temp.status_of(:'task'), 'PENDING', 'and the task goes on');
select is(count(*), 11::bigint, 'eleven stacks are kept') from rdq.history(:'task') where stack is not null;
-- Eleven stacks of 64 KiB, and 4 KiB of message, 4 of detail and a type for each attempt.
select cmp_ok(
  sum(octet_length(stack)), '<=', 11 * 65536::bigint, 'their size has a bound'
)
from rdq.history(:'task');
select cmp_ok(
  sum(octet_length(message) + octet_length(detail::text) + octet_length(error_type)), '<=', 200 * 9216::bigint,
  'and that of the rest'
)
from rdq.history(:'task');
select pg_temp.pass('1 day');
select is(row(attempt_no, attempt_count)::text, '(201,201)', 'the next claim knows its number')
from rdq.claim('{q}', 'tester');

select * from finish();
rollback;
