-- The documented delays, through real failures: base 10 s, factor 2, cap 60 s, no jitter. Each wait starts
-- at the failure, by the clock, so it lies between the attempt's end and now.
begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"backoff_base": "10 s", "backoff_factor": 2, "backoff_cap": "60 s", "jitter": 0}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.failed_and_waits(delay interval) returns boolean
language plpgsql
as $$
begin
  perform pg_temp.fail_one('q');
  return (
    select d.due_at between a.finished_at + delay and clock_timestamp() + delay
    from rdq.due d
    join rdq.attempt a on a.task_id = d.task_id
    order by a.attempt_no desc
    limit 1
  );
end
$$;

select ok(pg_temp.failed_and_waits('10 s'), 'after the first failure 10 seconds');
select pg_temp.pass('10 s');
select ok(pg_temp.failed_and_waits('20 s'), 'after the second 20');
select pg_temp.pass('20 s');
select ok(pg_temp.failed_and_waits('40 s'), 'after the third 40');
select pg_temp.pass('40 s');
select ok(pg_temp.failed_and_waits('60 s'), 'after the fourth 60, the cap');
select pg_temp.pass('60 s');
select ok(pg_temp.failed_and_waits('60 s'), 'after the fifth 60 again');

select pg_temp.pass('45 s');
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'and not before that is it claimed');

select * from finish();
rollback;
