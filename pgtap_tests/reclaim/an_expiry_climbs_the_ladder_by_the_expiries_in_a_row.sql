begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"backoff_base": "10 s", "jitter": 0, "vanish_limit": 8}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.wait_after_vanishing() returns interval
language plpgsql
as $$
begin
  perform pg_temp.pass('1 day');
  perform pg_temp.vanish_one('q');
  return (
    select date_trunc('second', d.due_at - a.finished_at + interval '0.5 s')
    from rdq.due d
    join rdq.attempt a on a.task_id = d.task_id
    order by a.attempt_no desc
    limit 1
  );
end
$$;

select is(pg_temp.wait_after_vanishing(), interval '10 s', 'the first waits the first rung');
select is(pg_temp.wait_after_vanishing(), interval '20 s', 'the second the second');
select is(pg_temp.wait_after_vanishing(), interval '40 s', 'the third the third');
select pg_temp.pass('1 day');
select pg_temp.fail_one('q');
select is(pg_temp.wait_after_vanishing(), interval '10 s', 'and after an attempt that reported, the first again');

select * from finish();
rollback;
