begin;
select plan(8);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q', '{"max_attempts": 30}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.fail_with_a_stack(times integer) returns void
language plpgsql
as $$
declare
  held record;
begin
  for i in 1 .. times loop
    perform pg_temp.pass('1 day');
    select * into held from rdq.claim('{q}', 'tester');
    perform f.status
    from rdq.fail(
      held.task_id, held.claim_token, 'Down', 'message ' || held.attempt_no, 'stack ' || held.attempt_no,
      error_class => 'TRANSIENT'
    ) f;
  end loop;
end
$$;

create function pg_temp.stacks() returns text
language sql
begin atomic
  select string_agg(attempt_no::text, ' ' order by attempt_no) filter (where stack = 'stack ' || attempt_no) from rdq.attempt;
end;

select pg_temp.fail_with_a_stack(11);
select is(pg_temp.stacks(), '1 2 3 4 5 6 7 8 9 10 11', 'of eleven attempts all have their stacks');
select pg_temp.fail_with_a_stack(1);
select is(pg_temp.stacks(), '1 3 4 5 6 7 8 9 10 11 12', 'the twelfth takes that of the second');
select pg_temp.fail_with_a_stack(18);
select is(pg_temp.stacks(), '1 21 22 23 24 25 26 27 28 29 30', 'of thirty the first and the last ten are left');
select is(pg_temp.status_of(:'task'), 'DEAD', 'a life ends');

select status from rdq.redrive(:'task');
select pg_temp.fail_with_a_stack(2);
select is(pg_temp.stacks(), '1 21 22 23 24 25 26 27 28 29 30 31 32', 'the next life takes none from the one before');
select pg_temp.fail_with_a_stack(13);
select is(
  pg_temp.stacks(), '1 21 22 23 24 25 26 27 28 29 30 31 36 37 38 39 40 41 42 43 44 45',
  'and has a first and a last ten of its own'
);
select is(count(*), 45::bigint, 'no attempt is forgotten') from rdq.history(:'task');
select is_empty(
  format('select * from rdq.history(%L) where message <> ''message '' || attempt_no or error_type <> ''Down''', :'task'),
  'and all the rest of each is kept'
);

select * from finish();
rollback;
