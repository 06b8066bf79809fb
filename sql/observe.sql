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
  rdq._attempt_count(t.id, s.life, q.max_releases, l.task_id is not null) as attempt_count,
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

create or replace view rdq.queue_stats with (security_barrier) as
select
  q.queue,
  q.paused_at is not null as paused,
  d.due,
  d.scheduled,
  l.in_flight,
  l.expired,
  x.dead,
  clock_timestamp() - d.oldest_due_at as oldest_due_age,
  clock_timestamp() - x.oldest_dead_at as oldest_dead_age
from rdq.queue q
cross join lateral (
  select
    count(*) filter (where d.due_at <= clock_timestamp()) as due,
    count(*) filter (where d.due_at > clock_timestamp()) as scheduled,
    min(d.due_at) filter (where d.due_at <= clock_timestamp()) as oldest_due_at
  from rdq.due d
  where d.queue = q.queue
) d
cross join lateral (
  select count(*) as in_flight, count(*) filter (where l.expires_at <= clock_timestamp()) as expired
  from rdq.lease l
  where l.queue = q.queue
) l
cross join lateral (
  select count(*) as dead, min(x.dead_at) as oldest_dead_at from rdq.dead x where x.queue = q.queue
) x
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
  r.runner, r.host, r.version, r.code_version, r.queues, r.concurrency, r.in_flight, r.unreported, r.started_at,
  r.seen_at, r.seen_at > clock_timestamp() - interval '30 seconds' as alive
from rdq.runner r;

comment on view rdq.runners is
'The runners that were seen in the last day: what they work on, how many handlers run, how many outcomes the database does not have yet. alive: seen within 30 seconds.';

create or replace view rdq.audit_log with (security_barrier) as
select a.*
from rdq.audit a
where (select rdq._queue_patterns('viewer')) is null
  or a.queue like any ((select rdq._queue_patterns('viewer'))::text[])
order by a.id desc;

comment on view rdq.audit_log is
'What operators and retention have changed, newest first: who, when, what, how many, why, and for an edit what it was and what it became.';

create or replace function rdq.doctor()
returns table (severity text, subject text, finding text, advice text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
begin atomic
  with viewer as materialized (
    select rdq._queue_patterns('viewer') as patterns
  ),
  seen as (
    select s.* from rdq.queue_stats s
  )
  select 'warning', s.queue, format('%s tasks are due, the oldest for %s', s.due, date_trunc('second', s.oldest_due_age)),
    'Start a runner for the queue, or add one: rdq-runner run --queue ' || s.queue || ' --handlers …'
  from seen s
  where not s.paused and s.oldest_due_age > interval '5 minutes'
  union all
  select 'warning', s.queue, format('the queue has been paused since %s while %s tasks are due', q.paused_at, s.due),
    'Go on with select rdq.resume_queue(' || quote_literal(s.queue) || '); the reason was: ' || coalesce(q.pause_reason, 'not given')
  from seen s
  join rdq.queue q on q.queue = s.queue
  where s.paused and s.due > 0
  union all
  select 'warning', s.queue, format('%s leases have expired and nobody has reclaimed them', s.expired),
    'No worker is alive here. Any claim, reclaim or tick takes them back: select * from rdq.tick();'
  from seen s
  where s.expired > 0
  union all
  select 'info', s.queue, format('%s dead letters, the oldest for %s', s.dead, date_trunc('second', s.oldest_dead_age)),
    'select * from rdq.dead_letter_groups(' || quote_literal(s.queue) || ');'
  from seen s
  where s.dead > 0
  union all
  select 'error', t.queue, format('%s tickets name a queue that does not exist', count(*)),
    'Create it again: select rdq.create_queue(' || quote_literal(t.queue) || ');'
  from (select d.queue from rdq.due d union all select l.queue from rdq.lease l) t
  cross join viewer v
  where not exists (select from rdq.queue q where q.queue = t.queue) and rdq._permitted(t.queue, v.patterns)
  group by t.queue
  union all
  select 'error', 'task ' || t.task_id, 'it has a ticket but does not exist: its row was removed by hand',
    'A claim drops the ticket, and says so in the audit. Use rdq.purge to delete a task.'
  from (
    select d.task_id, d.queue from rdq.due d
    union all select l.task_id, l.queue from rdq.lease l
    union all select x.task_id, x.queue from rdq.dead x
  ) t
  cross join viewer v
  where not exists (select from rdq.task k where k.id = t.task_id) and rdq._permitted(t.queue, v.patterns)
  union all
  select 'error', t.queue, format('%s tasks have no ticket and have not succeeded: their tickets were removed by hand', count(*)),
    'select task_id from rdq.tasks where queue = ' || quote_literal(t.queue) || ' and status is null; submit them again.'
  from rdq.task t
  cross join viewer v
  where not exists (select from rdq.due d where d.task_id = t.id)
    and not exists (select from rdq.lease l where l.task_id = t.id)
    and not exists (select from rdq.dead x where x.task_id = t.id)
    and not exists (select from rdq.attempt a where a.task_id = t.id and a.outcome = 'SUCCEEDED')
    and rdq._permitted(t.queue, v.patterns)
  group by t.queue
  union all
  select 'warning', 'redrive ' || r.redrive_id, format('paused after %s of %s', r.sent + r.skipped, r.matched),
    'select rdq.resume_redrive(' || quote_literal(r.redrive_id) || '), or rdq.cancel_redrive.'
  from rdq.redrive_run r
  cross join viewer v
  where r.state = 'PAUSED'
    and (v.patterns is null or r.queues <@ v.patterns or rdq._permitted(r.filter ->> 'queue', v.patterns))
  union all
  select 'warning', 'database', 'the default isolation level is ' || current_setting('default_transaction_isolation'),
    'rdq works in read committed; under a stricter level concurrent claims fail with serialization errors and have to be repeated.'
  where current_setting('default_transaction_isolation') <> 'read committed'
  union all
  select 'error', 'database', 'the encoding of the database is ' || current_setting('server_encoding'),
    'rdq stores texts of any language; use a database with the encoding UTF8.'
  where current_setting('server_encoding') <> 'UTF8'
  union all
  select 'warning', 'database', format('a transaction of %s has been open since %s', coalesce(nullif(p.application_name, ''), 'process ' || p.pid), p.xact_start),
    'It keeps removed tickets from being cleaned up. End it, or find what holds it open.'
  from pg_stat_activity p
  where p.datname = current_database() and p.backend_xmin is not null and p.xact_start < clock_timestamp() - interval '5 minutes';
end;

comment on function rdq.doctor() is
'What is wrong with this installation, in words, with what to do. No row: nothing was found. It reads every task once: not for a metric.';
