begin;
select plan(9);
\ir ../helpers/common.psql

select rdq.create_queue('q');

-- How long a task waits after it was released with a delay.
create function pg_temp.wait_after(delay interval) returns interval
language plpgsql
as $$
declare
  held record;
begin
  perform rdq.submit('q', 'h', 'x');
  select * into held from pg_temp.claim_one('q');
  perform rdq.release(array[held.task_id], array[held.claim_token], delay => wait_after.delay);
  return (
    select date_trunc('second', d.due_at - a.finished_at + interval '0.5 s')
    from rdq.due d
    join rdq.attempt a on a.task_id = d.task_id
    where d.task_id = held.task_id
  );
end
$$;

select is(pg_temp.wait_after('5 minutes'), interval '5 minutes', 'five minutes');
select is(pg_temp.wait_after('1 s'), interval '1 s', 'a second, without the rung of a failure');
select is(pg_temp.wait_after('24 hours'), interval '24 hours', 'a day at most');
select is(pg_temp.wait_after('25 hours'), interval '24 hours', 'more is a day');
select is(pg_temp.wait_after('170000000 years'), interval '24 hours', 'an absurd one too');
select is(pg_temp.wait_after('-1 hour'), interval '0', 'a negative one is none');
select rdq.cancel(task_id) from rdq.due where due_at <= clock_timestamp();
select is(pg_temp.wait_after('-170000000 years'), interval '0', 'an absurd negative one too');
select rdq.cancel(task_id) from rdq.due where due_at <= clock_timestamp();
select is(pg_temp.wait_after('0'), interval '0', 'none is none');
select rdq.cancel(task_id) from rdq.due where due_at <= clock_timestamp();
select is(pg_temp.wait_after(null), interval '0', 'and null is none');

select * from finish();
rollback;
