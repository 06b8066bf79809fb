-- Doctor: what is wrong with this installation, in words, with what to do about it. Each finding has a
-- subject and an advice that can be pasted: a statement, or a command of the shell, with a remark after
-- "--" or "#". Text that others wrote (reasons, names of sessions) is never part of what is pasted.
--
--   error     work is lost, stuck or refused        warning   look at it today
--   info      you may want to know
--
-- A viewer is told of the queues that it may see, and of the server; of roles and their grants only whoever
-- may see every queue. Nothing here reads a whole table, unless asked to: rdq's own tables are probed by
-- index, a queue at a time, and nothing is counted beyond a thousand.

create or replace function rdq.doctor(deep boolean default false)
returns table (severity text, subject text, finding text, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  -- The one thing that is looked at with the rights of the caller, who may see more of it than the owner.
  select d.severity, d.subject, d.finding, d.advice
  from rdq._doctor(deep, (
    select jsonb_agg(jsonb_build_object('pid', s.pid, 'name', s.application_name, 'began_at', s.xact_start))
    from pg_stat_activity s
    where s.xact_start is not null or s.backend_xmin is not null
  )) d
$$;

comment on function rdq.doctor(boolean) is
'What is wrong with this installation, in words, with what to do: error, work is lost, stuck or refused; warning, look at it today; info, you may want to know. No row: nothing was found. It is cheap; deep also reads every task, to find those without a ticket and tickets without a task.';

create or replace function rdq._doctor(deep boolean, sessions jsonb)
returns table (severity text, subject text, finding text, advice text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with viewer as materialized (
    select rdq._queue_patterns('viewer') as patterns
  )
  select f.severity, f.subject, f.finding, f.advice
  from viewer v
  cross join lateral (
    select * from rdq._doctor_waiting(v.patterns)
    union all select * from rdq._doctor_ended(v.patterns)
    union all select * from rdq._doctor_unroutable(v.patterns)
    union all select * from rdq._doctor_lost_queues(v.patterns)
    union all select * from rdq._doctor_tickets(v.patterns) where deep
    union all select * from rdq._doctor_redrives(v.patterns)
    union all select * from rdq._doctor_runners(v.patterns)
    union all select * from rdq._doctor_access() where v.patterns is null or '%' = any (v.patterns)
    union all select * from rdq._doctor_settings()
    union all select * from rdq._doctor_collation()
    union all select * from rdq._doctor_locks()
    union all select * from rdq._doctor_notices(pg_notification_queue_usage()) where not pg_is_in_recovery()
    union all select * from rdq._doctor_sessions(sessions)
    union all select * from rdq._doctor_snapshots()
    union all select * from rdq._doctor_vacuum()
    union all select * from rdq._doctor_bloat()
  ) f
  order by array_position(array['error', 'warning', 'info'], f.severity), f.subject, f.finding
$$;

comment on function rdq._doctor(boolean, jsonb) is
'doctor() with the owner''s rights. sessions is what the caller may see of pg_stat_activity: pid, name, began_at of the transaction.';

-- Queues

create or replace function rdq._doctor_waiting(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
  -- Walks due_by_time and lease_by_expiry, one ticket a queue.
  with queue as materialized (
    select
      q.queue, q.paused_at, statement_timestamp() - q.paused_at as paused_for,
      coalesce(' (' || rdq._one_line(q.pause_reason) || ')', '') as why,
      statement_timestamp() - d.due_at as due_for, statement_timestamp() - l.expires_at as expired_for
    from rdq.queue q
    left join lateral (select t.due_at from rdq.due t where t.queue = q.queue order by t.due_at limit 1) d on true
    left join lateral (select t.expires_at from rdq.lease t where t.queue = q.queue order by t.expires_at limit 1) l on true
    where rdq._permitted(q.queue, patterns)
  )
  select
    'warning', q.queue,
    format('%s due, the oldest for %s, %s', rdq._due_tasks(q.queue), rdq._in_words(q.due_for), w.finding),
    case when w.alive > 0
      then format('select * from rdq.runners where queues is null or %L = any (queues);  -- all busy? Add one, or slots', q.queue)
      else format('rdq-runner run --queue %s --handlers myapp.handlers  # the module with your handlers', q.queue)
    end
  from queue q
  cross join lateral rdq._workers_of(q.queue) w
  where q.paused_at is null and q.due_for > interval '1 minute'
    and (q.due_for > interval '5 minutes' or not (w.alive > 0 or w.held))
  union all
  select
    'warning', q.queue,
    format('paused for %s%s while %s due, the oldest for %s',
      rdq._in_words(q.paused_for), q.why, rdq._due_tasks(q.queue), rdq._in_words(q.due_for)),
    format('select rdq.resume_queue(%L);', q.queue)
  from queue q
  where least(q.paused_for, q.due_for) > interval '1 minute' and q.due_for is not null and q.paused_at is not null
  union all
  select
    'info', q.queue, format('paused for %s%s; nothing in it is due', rdq._in_words(q.paused_for), q.why),
    format('select rdq.resume_queue(%L);', q.queue)
  from queue q
  where q.paused_for > interval '1 day' and (q.due_for is null or q.due_for < interval '0')
  union all
  select
    'warning', q.queue,
    format('%s expired without being reclaimed, the first %s ago', rdq._expired_leases(q.queue), rdq._in_words(q.expired_for)),
    format('select * from rdq.reclaim(queues => array[%L]);  -- any claim or tick does this: no worker is alive here', q.queue)
  from queue q
  where q.expired_for > interval '30 seconds'
$$;

comment on function rdq._doctor_waiting(text[]) is
'Queues whose work is not done: due for long, paused, held by workers that are gone.';

create or replace function rdq._workers_of(queue text, out alive bigint, out held boolean, out finding text)
language sql stable
set enable_seqscan = off
set jit = off
as $$
  select
    r.alive, l.held,
    case
      when r.alive > 0 then format('though %s on this queue', case r.alive when 1 then '1 runner works' else r.alive || ' runners work' end)
      when l.held then 'though some worker holds leases; no runner of this queue was seen in the last 30 seconds'
      else 'and no runner of this queue was seen in the last 30 seconds'
        || coalesce(' (the last one, ' || rdq._one_line(r.last_runner) || ', '
          || rdq._in_words(statement_timestamp() - r.last_seen_at) || ' ago)', '')
        || '; other workers are not seen until they claim'
    end
  from (
    select
      count(*) filter (where r.seen_at > statement_timestamp() - interval '30 seconds') as alive,
      max(r.seen_at) as last_seen_at, (array_agg(r.runner order by r.seen_at desc))[1] as last_runner
    from rdq.runner r
    where r.queues is null or _workers_of.queue = any (r.queues)
  ) r
  cross join (
    select exists (
      select from rdq.lease l where l.queue = _workers_of.queue and l.expires_at > statement_timestamp()
    ) as held
  ) l
$$;

comment on function rdq._workers_of(text) is
'Who works on a queue, as far as anybody can know: runners that were seen, whether a lease is held, and both in words.';

create or replace function rdq._due_tasks(queue text) returns text
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  select rdq._counted(count(*), 'task is', 'tasks are')
  from (
    select from rdq.due d where d.queue = _due_tasks.queue and d.due_at <= statement_timestamp() limit 1001
  ) d
$$;

comment on function rdq._due_tasks(text) is 'How many tasks of a queue are due, in words.';

create or replace function rdq._expired_leases(queue text) returns text
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  select rdq._counted(count(*), 'lease has', 'leases have')
  from (
    select from rdq.lease l where l.queue = _expired_leases.queue and l.expires_at <= statement_timestamp() limit 1001
  ) l
$$;

comment on function rdq._expired_leases(text) is 'How many leases of a queue have expired, in words.';

create or replace function rdq._doctor_ended(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
  -- Walks dead_by_queue and attempt_by_success from their lower ends. With an equation for the queue the order
  -- would be that of dead_by_time as well, and where statistics know one queue only that would be taken.
  with queue as materialized (
    select
      q.queue, q.keep_dead, q.keep_succeeded,
      statement_timestamp() - d.dead_at as dead_for, statement_timestamp() - a.finished_at as succeeded_for
    from rdq.queue q
    left join lateral (
      select t.queue, t.dead_at
      from rdq.dead t
      where (t.queue, t.dead_at) >= (q.queue, '-infinity'::timestamptz)
      order by t.queue, t.dead_at
      limit 1
    ) d on d.queue = q.queue
    left join lateral (
      select t.finished_at from rdq.attempt t where t.queue = q.queue and t.outcome = 'SUCCEEDED' order by t.finished_at limit 1
    ) a on true
    where rdq._permitted(q.queue, patterns)
  )
  select
    'info', q.queue,
    format('%s, the oldest for %s%s', rdq._counted(rdq._dead_letters_since(q.queue, '-infinity'), 'dead letter', 'dead letters'),
      rdq._in_words(q.dead_for),
      '; growing: ' || rdq._counted(nullif(fresh, 0), 'died', 'died') || ' in the last five minutes'),
    format('select * from rdq.dead_letter_groups(queue => %L);', q.queue)
  from queue q
  cross join lateral rdq._dead_letters_since(q.queue, statement_timestamp() - interval '5 minutes') fresh
  where q.dead_for is not null
  union all
  select
    'warning', q.queue,
    format('%s are kept for %s, but the oldest ended %s ago: retention does not keep up',
      e.what, rdq._in_words(e.keep), rdq._in_words(e.ended_for)),
    format('select * from rdq.tick(10000, array[%L]);  -- again until it purges none; runners do this every few seconds', q.queue)
  from queue q
  cross join lateral (
    values ('tasks that succeeded', q.keep_succeeded, q.succeeded_for), ('dead letters', q.keep_dead, q.dead_for)
  ) e (what, keep, ended_for)
  -- A tick may let what succeeded wait for an hour.
  where e.ended_for > e.keep + interval '2 hours'
$$;

comment on function rdq._doctor_ended(text[]) is 'Queues with dead letters, or with more of the past than their settings keep.';

create or replace function rdq._doctor_unroutable(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
  -- Looks at the next fifty tickets of each queue, and at the last attempts of each.
  select
    'warning', n.queue,
    format('tasks of handler %s are handed back again and again, the last time %s ago: %s', n.handler,
      rdq._in_words(statement_timestamp() - max(n.finished_at)), rdq._one_line((array_agg(n.message order by n.finished_at desc))[1])),
    'select * from rdq.runners where alive;  -- start one that has it; or send them elsewhere: rdq.redrive has to_handler, once they are dead'
  from (
    select q.queue, t.handler, r.message, r.finished_at
    from rdq.queue q
    cross join lateral (
      select d.task_id, d.life from rdq.due d where d.queue = q.queue and d.has_history order by d.due_at limit 50
    ) d
    cross join lateral (select t.handler from rdq.task t where t.id = d.task_id limit 1) t
    cross join lateral (
      select (array_agg(a.message order by a.attempt_no desc))[1] as message, max(a.finished_at) as finished_at
      from (
        select a.outcome, a.message, a.attempt_no, a.finished_at
        from rdq.attempt a
        where a.task_id = d.task_id and a.life = d.life
        order by a.attempt_no desc
        limit 2
      ) a
      having count(*) filter (where a.outcome = 'RELEASED') = 2
    ) r
    where rdq._permitted(q.queue, patterns)
  ) n
  group by n.queue, n.handler
$$;

comment on function rdq._doctor_unroutable(text[]) is 'Handlers whose tasks were handed back twice in a row: nobody has them, or whoever has them cannot run them.';

create or replace function rdq._dead_letters_since(queue text, since timestamptz) returns bigint
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
  -- Along dead_by_queue, as above.
  select count(*)
  from (
    select
    from rdq.dead d
    where (d.queue, d.dead_at) > (_dead_letters_since.queue, since)
      and (d.queue, d.dead_at) <= (_dead_letters_since.queue, 'infinity'::timestamptz)
    order by d.queue, d.dead_at
    limit 1001
  ) d
$$;

comment on function rdq._dead_letters_since(text, timestamptz) is 'How many dead letters of a queue died since then; 1001 stands for more than a thousand.';

create or replace function rdq._doctor_lost_queues(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
  -- Skips from queue to queue along due_by_time, lease_by_expiry and dead_by_queue.
  with recursive
  waiting as (
    (select d.queue from rdq.due d order by d.queue limit 1)
    union all
    select n.queue
    from waiting w
    cross join lateral (select d.queue from rdq.due d where d.queue > w.queue order by d.queue limit 1) n
  ),
  held as (
    (select l.queue from rdq.lease l order by l.queue limit 1)
    union all
    select n.queue
    from held h
    cross join lateral (select l.queue from rdq.lease l where l.queue > h.queue order by l.queue limit 1) n
  ),
  dead as (
    (select d.queue from rdq.dead d order by d.queue limit 1)
    union all
    select n.queue
    from dead x
    cross join lateral (select d.queue from rdq.dead d where d.queue > x.queue order by d.queue limit 1) n
  ),
  named as (
    select w.queue, 'tasks that wait' as what from waiting w
    union all select h.queue, 'tasks that are held' from held h
    union all select x.queue, 'dead letters' from dead x
    union all select distinct e.queue, 'endpoints' from rdq.endpoint e
  )
  select
    case when n.what = array['endpoints'] then 'warning' else 'error' end, n.queue,
    format('the queue does not exist, but %s it', case when cardinality(n.what) > 1
      then array_to_string(n.what[:cardinality(n.what) - 1], ', ') || ' and ' else '' end || n.what[cardinality(n.what)] || ' name'),
    case when rdq._collation_has_changed()
      then 'reindex schema rdq;  -- the version of the collation has changed, so an index may hide the queue'
      else format('select rdq.create_queue(%L);  -- its row was removed by hand; nothing in it can run', n.queue)
    end
  from (
    select n.queue, array_agg(n.what order by n.what) as what from named n group by n.queue
  ) n
  where rdq._permitted(n.queue, patterns)
    and (select q.queue from rdq.queue q where q.queue = n.queue) is null
$$;

comment on function rdq._doctor_lost_queues(text[]) is 'Tickets and endpoints that name a queue which does not exist.';

create or replace function rdq._doctor_tickets(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
set jit = off
as $$
  with ticket as materialized (
    select d.task_id, d.queue from rdq.due d
    union all select l.task_id, l.queue from rdq.lease l
    union all select x.task_id, x.queue from rdq.dead x
  )
  select
    'error', t.queue,
    format('%s without a task, such as %s: rows of rdq.task were removed by hand',
      rdq._counted(count(*), 'ticket', 'tickets', null), min(t.task_id::text)),
    'select * from rdq.audit_log where action = ''drop_ticket'';  -- a claim drops such a ticket and says so there; to delete tasks there is rdq.purge'
  from ticket t
  where not exists (select from rdq.task k where k.id = t.task_id) and rdq._permitted(t.queue, patterns)
  group by t.queue
  union all
  select
    'error', k.queue,
    format('%s no ticket and did not succeed, such as %s: tickets were removed by hand',
      rdq._counted(count(*), 'task has', 'tasks have', null), min(k.id::text)),
    format('select task_id from rdq.tasks where queue = %L and status is null;  -- submit them again', k.queue)
  from rdq.task k
  where not exists (select from ticket t where t.task_id = k.id)
    and not exists (select from rdq.attempt a where a.task_id = k.id and a.outcome = 'SUCCEEDED')
    and rdq._permitted(k.queue, patterns)
  group by k.queue
  union all
  select
    'error', min(t.queue), format('task %s has %s tickets: one was written by hand', t.task_id, count(*)),
    format('select * from rdq.history(%L);  -- shows what really happened to it', t.task_id)
  from ticket t
  where rdq._permitted(t.queue, patterns)
  group by t.task_id
  having count(*) > 1
$$;

comment on function rdq._doctor_tickets(text[]) is
'Tickets without a task, tasks without a ticket, tasks with two. It reads every task.';

-- Redrives and runners

create or replace function rdq._doctor_redrives(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'warning', 'redrive ' || r.redrive_id,
    format('%s after %s of %s%s', r.what, r.sent + r.key_held + r.no_longer_dead, r.matched, ': ' || rdq._one_line(r.state_reason)),
    case r.state
      when 'RUNNING' then 'select * from rdq.tick();  -- a runner does this every few seconds'
      else format('select rdq.resume_redrive(%1$L);  -- or: select rdq.cancel_redrive(%1$L);', r.redrive_id)
    end
  from (
    select
      r.*,
      case
        when r.state = 'HALTED' then 'halted'
        when r.state = 'PAUSED' then 'paused'
        when r.state = 'RUNNING' and r.next_due_at < statement_timestamp() - interval '5 minutes'
          and not exists (select from rdq.runner x where x.seen_at > statement_timestamp() - interval '30 seconds')
          then 'running, though no runner was seen in the last 30 seconds to carry it on, now'
      end as what
    from rdq.redrive_run r
    where r.settled_at is null
  ) r
  where r.what is not null and rdq._may_see_redrive(r.queues, r.filter, patterns)
$$;

comment on function rdq._doctor_redrives(text[]) is 'Bulk redrives that do not go on: halted, paused, or with nobody to carry them on.';

create or replace function rdq._doctor_runners(patterns text[])
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  with seen as materialized (
    select r.runner, r.version, r.code_version
    from rdq.runner r
    where r.seen_at > statement_timestamp() - interval '30 seconds'
      and (patterns is null or r.queues is null or exists (select from unnest(r.queues) q where q like any (patterns)))
  )
  select
    'warning', 'runner ' || rdq._one_line(s.runner),
    format('it is rdq-runner %s, and the schema has version %s: upgrade the older of them', rdq._one_line(s.version), rdq.version()),
    'rdq-runner migrate  # with the newer package; then restart the runner with it'
  from seen s
  where substring(s.version from '^[0-9]+[.][0-9]+') <> substring(rdq.version() from '^[0-9]+[.][0-9]+')
  union all
  select
    'info', 'runners',
    format('%s code versions run at once: %s', count(*), string_agg(c.version || ' (' || c.runners || ')', ', ' order by c.version)),
    'select runner, code_version, started_at from rdq.runners where alive;  -- as it is while a deploy is under way'
  from (
    select rdq._one_line(s.code_version) as version, count(*) as runners from seen s where s.code_version is not null group by 1
  ) c
  having count(*) > 1
$$;

comment on function rdq._doctor_runners(text[]) is 'Live runners of another version than the schema, or of different code.';

-- Roles

create or replace function rdq._doctor_access()
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'error', 'schema rdq',
    format('everybody may use %s of it, such as %s: it was restored without privileges, or somebody granted them to PUBLIC',
      rdq._counted(count(*), 'function or table', 'functions and tables'), min(o.name)),
    'revoke all on all functions in schema rdq from public; revoke all on all tables in schema rdq from public;'
  from rdq._open_to_public() o (name)
  having count(*) > 0
  union all
  select
    'warning', 'role ' || rdq._one_line(r.rolname),
    format('it is a %s, but may not use %s, such as %s', a.capability,
      rdq._counted(count(*), 'function or view of it', 'functions and views of it'), min(p.name)),
    format('select rdq.grant_access(%L, %L, %L);  -- the same again, with what an upgrade has brought', r.rolname, a.capability, a.queues)
  from rdq.access a
  join pg_roles r on r.oid = a.role
  cross join lateral rdq._missing_privileges(r.oid, a.capability) p (name)
  group by r.rolname, a.capability, a.queues
  union all
  select
    'warning', 'role ' || rdq._one_line(a.rolname), s.finding || ', by a setting of the role',
    format('alter role %I%s reset %I;', a.rolname, case when g.setdatabase <> 0 then format(' in database %I', current_database()) end, s.name)
  from (select distinct r.oid, r.rolname from rdq.access a join pg_roles r on r.oid = a.role) a
  join pg_db_role_setting g on g.setrole = a.oid and g.setdatabase in (0, (select d.oid from pg_database d where d.datname = current_database()))
  cross join lateral unnest(g.setconfig) as c (entry)
  cross join lateral rdq._bad_setting(split_part(c.entry, '=', 1), substring(c.entry from '=(.*)$')) s
  where s.finding is not null
$$;

comment on function rdq._doctor_access() is
'What everybody may use, roles that lack what they were granted, roles with settings that defeat rdq.';

create or replace function rdq._missing_privileges(role oid, capability text) returns setof text
language sql stable
as $$
  select 'the schema' where not has_schema_privilege(role, 'rdq', 'usage')
  union all
  select p.oid::regprocedure::text
  from pg_proc p
  where p.pronamespace = 'rdq'::regnamespace and p.proname = any (rdq._capability_names(capability))
    and not has_function_privilege(role, p.oid, 'execute')
  union all
  select c.oid::regclass::text
  from pg_class c
  where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname = any (rdq._capability_names(capability))
    and not has_table_privilege(role, c.oid, 'select')
$$;

comment on function rdq._missing_privileges(oid, text) is 'What a capability gives, and a role may not use.';

-- Words

create or replace function rdq._in_words(span interval) returns text
language sql immutable strict
as $$
  select case
    when s.seconds < 120 then rdq._counted(s.seconds, 'second', 'seconds', 120)
    when s.seconds < 7200 then s.seconds / 60 || ' minutes'
    when s.seconds < 172800 then s.seconds / 3600 || ' hours'
    else s.seconds / 86400 || ' days'
  end
  from (select greatest(floor(extract(epoch from span)), 0)::bigint as seconds) s
$$;

comment on function rdq._in_words(interval) is 'How long something took, in its largest unit: 90 seconds, 7 minutes.';

create or replace function rdq._counted(count bigint, one text, many text, most bigint default 1000) returns text
language sql immutable
as $$
  select case when count > most then 'more than ' || most else count::text end || ' ' || case count when 1 then one else many end
$$;

comment on function rdq._counted(bigint, text, text, bigint) is 'So many things, in words; beyond most nobody has counted.';

create or replace function rdq._one_line(text text) returns text
language sql immutable strict
as $$
  select left(regexp_replace(text, '[[:cntrl:][:space:]]+', ' ', 'g'), 200)
$$;

comment on function rdq._one_line(text) is 'What somebody wrote, made to fit into a sentence.';
