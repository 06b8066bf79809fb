-- The wait is the greater of the rung and of what was asked for, at most a day. Nothing that is asked for
-- raises, or brings the next attempt forward.
begin;
select plan(28);

select rdq.create_queue('q', '{"backoff_base": "100 s", "jitter": 0}');

create temp table asked as
select place, failure::jsonb, wait::interval
from (
  values
    (1, '{}', '100 s'),
    (2, '{"retry_after": null}', '100 s'),
    (3, '{"retry_after": 3600}', '1 hour'),
    (4, '{"retry_after": "3600"}', '1 hour'),
    (5, '{"retry_after": "2 hours"}', '2 hours'),
    (6, '{"retry_after": 1}', '100 s'),
    (7, '{"retry_after": 0}', '100 s'),
    (8, '{"retry_after": -3600}', '100 s'),
    (9, '{"retry_after": "-3 hours"}', '100 s'),
    (10, '{"retry_after": 9999999999}', '1 day'),
    (11, '{"retry_after": 99999999999999999999}', '1 day'),
    (12, '{"retry_after": 1e300}', '1 day'),
    (13, '{"retry_after": "170000000 years"}', '1 day'),
    (14, '{"retry_after": "garbage"}', '100 s'),
    (15, '{"retry_after": ""}', '100 s'),
    (16, '{"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}', '100 s'),
    (17, '{"retry_after": true}', '100 s'),
    (18, '{"retry_after": [3600]}', '100 s'),
    (19, '{"retry_after": {"seconds": 3600}}', '100 s')
) as v (place, failure, wait);

create temp table asked_by_fail as
select place, retry_after::interval, wait::interval
from (
  values
    (1, null, '100 s'),
    (2, '1 hour', '1 hour'),
    (3, '1 s', '100 s'),
    (4, '0', '100 s'),
    (5, '-1 hour', '100 s'),
    (6, '2 days', '1 day'),
    (7, '170000000 years', '1 day'),
    (8, '-170000000 years', '100 s'),
    (9, '1 month', '1 day')
) as v (place, retry_after, wait);

-- From the end of the one attempt, as the history has it, to the next: no matter how slow this machine is.
create function pg_temp.wait_of(task_id uuid, next_attempt_at timestamptz) returns interval
language sql
begin atomic
  select date_trunc('second', wait_of.next_attempt_at - a.finished_at + interval '0.5 s')
  from rdq.attempt a
  where a.task_id = wait_of.task_id;
end;

-- How long a task waits after a failure, when it has said what it has to say.
create function pg_temp.wait_after(failure jsonb) returns interval
language plpgsql
as $$
declare
  held record;
begin
  perform rdq.submit('q', 'h', 'x');
  select * into held from rdq.claim('{q}', 'tester');
  return pg_temp.wait_of(
    held.task_id,
    (
      select r.next_attempt_at
      from rdq.report(array[held.task_id], array[held.claim_token], array[failure || '{"class": "TRANSIENT"}']) r
    )
  );
end
$$;

create function pg_temp.wait_after(retry_after interval) returns interval
language plpgsql
as $$
declare
  held record;
begin
  perform rdq.submit('q', 'h', 'x');
  select * into held from rdq.claim('{q}', 'tester');
  return pg_temp.wait_of(
    held.task_id,
    (select f.next_attempt_at from rdq.fail(held.task_id, held.claim_token, 'Busy', retry_after => wait_after.retry_after) f)
  );
end
$$;

select is(justify_interval(pg_temp.wait_after(failure)), justify_interval(wait), format('report says %s', failure))
from asked
order by place;
select is(
  justify_interval(pg_temp.wait_after(retry_after)), justify_interval(wait),
  'fail says ' || coalesce(retry_after::text, 'nothing')
)
from asked_by_fail
order by place;

select * from finish();
rollback;
