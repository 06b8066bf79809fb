-- Observe: what people look at. The views show the queues that the caller may see (grant_access), and no
-- payload, header or stack. Whom that is, is asked once a query: the subselects do not depend on the row.

create or replace view rdq.queues with (security_barrier) as
select q.*
from rdq.queue q
where (select rdq._queue_patterns('viewer')) is null
  or q.queue like any ((select rdq._queue_patterns('viewer'))::text[]);

comment on view rdq.queues is 'The queues with their settings. A null ladder, handler_timeout or give_up_after means none, a null keep_… for ever.';

create or replace view rdq.tasks with (security_barrier) as
select
  t.id as task_id,
  t.queue,
  t.handler,
  t.handler_version,
  case
    when d.task_id is not null then 'PENDING'
    when l.task_id is not null then 'IN_FLIGHT'
    when x.task_id is not null then 'DEAD'
    when a.outcome = 'SUCCEEDED' then 'SUCCEEDED'
  end as status,
  (
    -- As _tally() counts; the call of a function would need a right to it, and tell of any task.
    select rdq._spent(
      count(*) filter (where h.outcome <> 'RELEASED' and h.started_at is not null),
      count(*) filter (where h.outcome = 'RELEASED'),
      q.max_releases
    ) + (l.task_id is not null)::integer
    from rdq.attempt h
    where h.task_id = t.id and h.life = s.life
  ) as attempt_count,
  coalesce(t.max_attempts, q.max_attempts) as max_attempts,
  s.life as redrive_count,
  d.due_at as next_attempt_at,
  l.expires_at as lease_expires_at,
  l.runner,
  case when d.task_id is not null then d.give_up_at when l.task_id is not null then l.give_up_at else t.give_up_at end as give_up_at,
  coalesce(x.dead_at, case when d.task_id is null and l.task_id is null then a.finished_at end) as finished_at,
  x.reason as dead_reason,
  f.error_class as last_error_class,
  f.error_type as last_error_type,
  left(f.message, 200) as last_message,
  t.dedupe_key,
  t.created_at
from rdq.task t
left join rdq.queue q on q.queue = t.queue
left join rdq.due d on d.task_id = t.id
left join rdq.lease l on l.task_id = t.id
left join rdq.dead x on x.task_id = t.id
left join lateral (
  select a.* from rdq.attempt a where a.task_id = t.id order by a.attempt_no desc limit 1
) a on true
left join lateral (
  select f.* from rdq.attempt f where f.task_id = t.id and f.outcome = 'FAILED' order by f.attempt_no desc limit 1
) f on true
cross join lateral (select coalesce(d.life, l.life, x.life, a.life) as life) s
where (select rdq._queue_patterns('viewer')) is null
  or t.queue like any ((select rdq._queue_patterns('viewer'))::text[]);

comment on view rdq.tasks is
'One row a task: what was asked, where it is, and its last failure. attempt_count is the budget spent in this life, a claim in flight included. A null status would be a task without a ticket, which rdq.doctor() reports.';

create or replace view rdq._queue_counts as
select
  q.queue,
  -- A million rows take 60 ms. A clock that is read for each row would take as long again.
  (select count(*) from rdq.due d where d.queue = q.queue and d.due_at <= statement_timestamp()) as due,
  (select count(*) from rdq.due d where d.queue = q.queue and d.due_at > statement_timestamp()) as scheduled,
  (select count(*) from rdq.dead x where x.queue = q.queue) as dead,
  (
    -- From the lower end of dead_by_queue, whatever the statistics say: no other index has this order.
    select f.dead_at
    from (
      select x.queue, x.dead_at
      from rdq.dead x
      where (x.queue, x.dead_at) >= (q.queue, '-infinity')
      order by x.queue, x.dead_at
      limit 1
    ) f
    where f.queue = q.queue
  ) as oldest_dead_at,
  statement_timestamp() as counted_at
from rdq.queue q;

comment on view rdq._queue_counts is
'What takes the longer the more there is: the tasks of every queue that wait or are dead, each counted by a walk over the smallest index that has the queue.';

create or replace view rdq.queue_stats with (security_barrier) as
select
  q.queue,
  q.paused_at is not null as paused,
  c.due,
  c.scheduled,
  l.in_flight,
  l.expired,
  c.dead,
  statement_timestamp() - d.oldest_due_at as oldest_due_age,
  statement_timestamp() - c.oldest_dead_at as oldest_dead_age
from rdq.queue q
join rdq._queue_counts c on c.queue = q.queue
cross join lateral (
  select min(d.due_at) as oldest_due_at from rdq.due d where d.queue = q.queue and d.due_at <= statement_timestamp()
) d
cross join lateral (
  select count(*) as in_flight, count(*) filter (where l.expires_at <= statement_timestamp()) as expired
  from rdq.lease l
  where l.queue = q.queue
) l
where (select rdq._queue_patterns('viewer')) is null
  or q.queue like any ((select rdq._queue_patterns('viewer'))::text[]);

comment on view rdq.queue_stats is
'How many tasks of each queue are due, scheduled for later, in flight (of these expired: nobody has reclaimed them yet) and dead, and how old the oldest are.';

create or replace view rdq.endpoints with (security_barrier) as
select e.queue, e.handler, e.url, e.timeout, e.secret, e.response_rules, e.created_at
from rdq.endpoint e
where (select rdq._queue_patterns('viewer')) is null
  or e.queue like any ((select rdq._queue_patterns('viewer'))::text[]);

comment on view rdq.endpoints is 'The handlers that are HTTP callbacks, without the header fields that are sent along.';

create or replace view rdq.runners with (security_barrier) as
select
  r.runner, r.host, r.version, r.code_version,
  case when p.patterns is null or r.queues is null then r.queues else array(
    select q.queue from unnest(r.queues) q (queue) where q.queue like any (p.patterns)
  ) end as queues,
  r.concurrency, r.in_flight, r.unreported, r.started_at,
  r.seen_at, r.seen_at > clock_timestamp() - interval '30 seconds' as alive
from rdq.runner r
-- Asked once, and not for each runner, or each of their queues.
cross join (select rdq._queue_patterns('viewer') offset 0) as p (patterns)
where p.patterns is null or r.queues is null or exists (
  select from unnest(r.queues) q (queue) where q.queue like any (p.patterns)
);

comment on view rdq.runners is
'The runners that were seen in the last day: what they work on, how many handlers run, how many outcomes the database does not have yet. alive: seen within 30 seconds.';

create or replace view rdq.audit_log with (security_barrier) as
select a.*
from rdq.audit a
where (select rdq._queue_patterns('viewer')) is null
  or a.queue like any ((select rdq._queue_patterns('viewer'))::text[])
  -- What is of no one queue: who sees all of them, or the bulk redrive that it is about.
  or a.queue is null and (
    '%' = any ((select rdq._queue_patterns('viewer'))::text[])
    or (
      select rdq._may_see_redrive(r.queues, r.filter, (select rdq._queue_patterns('viewer')))
      from rdq.redrive_run r
      where r.redrive_id = a.redrive_id
    )
  )
order by a.id desc;

comment on view rdq.audit_log is
'What operators and retention have changed, newest first: who, when, what, how many, why, and for an edit what it was and what it became.';
