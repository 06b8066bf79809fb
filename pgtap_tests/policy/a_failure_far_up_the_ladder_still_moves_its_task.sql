-- Attempt 9,999 of 10,000 fails, under policies that overflow any naive arithmetic: the task waits, for a
-- time that is neither past nor beyond the cap and its jitter.
begin;
select plan(10);

create temp table policy as
select place, settings::jsonb, shortest::interval, longest::interval
from (
  values
    (1, '{"backoff_base": "1 s", "backoff_factor": 2, "backoff_cap": "1 hour", "jitter": 0}', '1 hour', '1 hour'),
    (2, '{"backoff_base": "5 s", "backoff_factor": 10, "backoff_cap": 315576000, "jitter": 0}', '87660 hours', '87660 hours'),
    (3, '{"backoff_base": 315576000, "backoff_factor": 1000, "backoff_cap": 315576000, "jitter": 1}', '0', '175320 hours'),
    (4, '{"backoff_base": "1 s", "backoff_factor": 1, "backoff_cap": "1 s", "jitter": 0.5}', '0.5 s', '1.5 s'),
    (5, '{"backoff_base": 0, "backoff_factor": 1000, "backoff_cap": "1 hour", "jitter": 1}', '0', '0')
) as v (place, settings, shortest, longest);

select rdq.create_queue('q' || place, settings || '{"max_attempts": 10000, "ambiguous_attempts": 10000}')
from policy;
select rdq.submit('q' || place, 'h', 'x') from policy;
insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, error_class, started_at, finished_at)
select t.id, n, 0, t.queue, 'FAILED', 'TRANSIENT', clock_timestamp(), clock_timestamp()
from rdq.task t
cross join generate_series(1, 9998) n;

create temp table seen as
select p.*, c.task_id, f.status, f.next_attempt_at, clock_timestamp() as seen_at
from policy p
cross join lateral rdq.claim(array['q' || p.place], 'tester') c
cross join lateral rdq.fail(c.task_id, c.claim_token, 'Down', error_class => 'TRANSIENT') f;

select is(s.status, 'PENDING', format('under %s the task waits', s.settings)) from seen s order by s.place;
select ok(
  s.next_attempt_at between a.finished_at + s.shortest and s.seen_at + s.longest,
  format('for %s to %s', s.shortest, s.longest)
)
from seen s
join rdq.attempt a on a.task_id = s.task_id and a.attempt_no = 9999
order by s.place;

select * from finish();
rollback;
