begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"ladder": ["10 s", "5 minutes", "3 hours"], "backoff_cap": "1 minute", "jitter": 0}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.wait_after_a_failure() returns interval
language plpgsql
as $$
begin
  perform pg_temp.pass('1 day');
  perform pg_temp.fail_one('q');
  return (
    select date_trunc('second', d.due_at - a.finished_at + interval '0.5 s')
    from rdq.due d
    join rdq.attempt a on a.task_id = d.task_id
    order by a.attempt_no desc
    limit 1
  );
end
$$;

select is(pg_temp.wait_after_a_failure(), interval '10 s', 'the first rung');
select is(pg_temp.wait_after_a_failure(), interval '5 minutes', 'the second');
select is(pg_temp.wait_after_a_failure(), interval '3 hours', 'the last, longer than backoff_cap as it was given');
select is(pg_temp.wait_after_a_failure(), interval '3 hours', 'which repeats');

select * from finish();
rollback;
