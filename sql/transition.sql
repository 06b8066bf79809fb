-- Transitions: the only places that move tickets. Each takes the one ticket of a task (delete … returning)
-- and writes at most one other in the same transaction. Who deleted the ticket goes on; a second worker,
-- a late reporter, a reclaimer or a second redrive finds nothing to take. Nothing else decides who wins.
--
--   _take      lease → (caller)          _succeed   (caller) → no ticket, and the attempt row
--   _schedule  (caller) → due            _conclude  (caller) → due or dead, and the attempt row
--   _bury      (caller) → dead
--
-- Lock order: leases in the order of task ids; then inserts; then dedupe keys, which belong to the holder
-- of the ticket. Sweeps skip locked tickets. They go through leases in the same order all the same: "skip
-- locked" does wait when a heartbeat commits in the instant between the look at a lease and the try to lock it,
-- and another report has taken the renewed lease by then (heap_lock_updated_tuple() of PostgreSQL knows no
-- skipping). No other ticket is ever updated.
--
-- Plans do not flip with statistics, not even with those of a table that was analysed when it was empty.
-- What is looked up for each of many is written as "cross join lateral (select … limit 1)": the limit
-- keeps the planner from reordering it, so it stays an index probe for each; what one statement takes, as
-- "= any (array)" of a key, which an index scan alone can answer. Sequential scans are off, nested
-- loops on whatever a caller has set for its arrays; JIT is off, since "off" is a cost so high that every
-- plan would be compiled. Plans are generic, made once a session: for parameters that are arrays the planner
-- would choose to plan at every call, which made a claim and report of one task cost three times as much.

create or replace function rdq._take(task_ids uuid[], claim_tokens uuid[]) returns rdq.lease[]
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  leases rdq.lease[];
begin
  -- Walks lease_pkey once, in the order of the ids, whatever order they were given in: so two reports of the same
  -- leases wait for each other here, in one order. A lease that a heartbeat renewed while we waited is
  -- followed to its new version, since it is found by its key and not by its place. "is true" keeps the pairs a
  -- hash that is looked into; a join could begin with all leases. Locking in a statement of its own and
  -- then deleting by place took 1.3 times the time, and 54 bytes of WAL more for each.
  with taken as (
    delete from rdq.lease l
    where l.task_id = any (task_ids)
      and ((l.task_id, l.claim_token) in (
        select g.task_id, g.claim_token from unnest(task_ids, claim_tokens) as g (task_id, claim_token)
      )) is true
    returning l as lease
  )
  select array_agg(t.lease) into leases from taken t;
  return coalesce(leases, '{}');
end
$$;

comment on function rdq._take(uuid[], uuid[]) is
'Ends the holds whose tokens are the right ones: deletes their leases and returns them. The one place that ends a hold.';

create or replace function rdq._succeed(leases rdq.lease[], finished_at timestamptz) returns uuid[]
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  successes uuid[];
  redriven rdq.redriven[];
begin
  -- Nothing is to be decided: no policy and no budget is read.
  with recorded as (
    insert into rdq.attempt (
      task_id, attempt_no, life, queue, outcome, runner, code_version, started_at, finished_at
    )
    select
      l.task_id, coalesce((select max(a.attempt_no) from rdq.attempt a where a.task_id = l.task_id), 0) + 1,
      l.life, l.queue, 'SUCCEEDED', l.runner, l.code_version, l.claimed_at, _succeed.finished_at
    from unnest(leases) l
    where (select t.id from rdq.task t where t.id = l.task_id) is not null
    returning task_id, life
  )
  select
    array_agg(r.task_id), array_agg(row(r.task_id, r.life, null, 'SUCCEEDED')::rdq.redriven) filter (where r.life > 0)
  into successes, redriven
  from recorded r;
  successes := coalesce(successes, '{}');
  if cardinality(successes) < cardinality(leases) then
    perform rdq._check_conserved(array(select l.task_id from unnest(leases) l), cardinality(successes));
  end if;
  delete from rdq.dedupe d where d.task_id = any (successes);
  if redriven is not null then
    perform rdq._note_redriven(redriven);
  end if;
  return successes;
end
$$;

comment on function rdq._succeed(rdq.lease[], timestamptz) is
'Ends tasks whose leases the caller has taken: records an attempt of each that succeeded, and returns their ids.';

create or replace function rdq._conclude(
  endings rdq.attempt[],
  give_up_ats timestamptz[],
  not_befores timestamptz[],
  forced_reason text default null
) returns table (task_id uuid, status text, next_attempt_at timestamptz, dead_reason text, error_class text)
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  retries rdq.due[];
  retry_classes text[];
  deaths rdq.dead[];
  death_classes text[];
  long_lives uuid[];
  their_eleventh integer[];
begin
  with judged as materialized (
    select
      e.task_id, h.next_no, h.first_no, e.life, e.queue, e.outcome, c.error_class, e.error_type, e.message, e.stack,
      e.detail, e.runner, e.code_version, e.started_at, e.finished_at, e.claim_token, e.give_up_at, n.next_at,
      coalesce(forced_reason, rdq._verdict(
        e.outcome, c.error_class,
        rdq._spent(
          h.runs + (e.outcome <> 'RELEASED' and e.started_at is not null)::integer,
          h.releases + (e.outcome = 'RELEASED')::integer,
          q.max_releases
        ),
        coalesce(t.max_attempts, q.max_attempts),
        h.ambiguous + (c.error_class = 'AMBIGUOUS' and e.started_at is not null)::integer, q.ambiguous_attempts,
        h.vanished + 1, q.vanish_limit,
        n.next_at, e.give_up_at
      )) as verdict
    from unnest(give_up_ats, not_befores, endings) as e (give_up_at, not_before)
    cross join lateral (select q.* from rdq.queue q where q.queue = e.queue limit 1) q
    cross join lateral (select t.max_attempts from rdq.task t where t.id = e.task_id limit 1) t
    cross join lateral rdq._tally(e.task_id, e.life, true) h
    cross join lateral (
      select case when e.outcome = 'FAILED'
        then rdq._classify(e.error_class, e.error_type, q.error_rules)
      end as error_class
      offset 0
    ) c
    -- A failure climbs the ladder by every failure of this life. A lease that expired has waited already
    -- and says little about the task: it climbs by the expiries in a row. A release only waits as asked.
    cross join lateral (
      select greatest(e.not_before, moment + case
        when e.outcome = 'RELEASED' then interval '0'
        else rdq._jittered(
          rdq._delay(
            case e.outcome when 'LEASE_EXPIRED' then h.vanished else h.rungs end::integer + 1,
            q.backoff_base, q.backoff_factor, q.backoff_cap, q.ladder
          ),
          q.jitter
        )
      end) as next_at
    ) n
  ),
  recorded as (
    insert into rdq.attempt (
      task_id, attempt_no, life, queue, outcome, error_class, error_type, message, stack, detail, runner,
      code_version, started_at, finished_at, claim_token
    )
    select
      j.task_id, j.next_no, j.life, j.queue, j.outcome, j.error_class, j.error_type, j.message, j.stack, j.detail,
      j.runner, j.code_version, j.started_at, j.finished_at, j.claim_token
    from judged j
  )
  select
    array_agg(row(j.task_id, j.queue, j.next_at, j.life, j.give_up_at, true)::rdq.due)
      filter (where j.verdict is null),
    array_agg(j.error_class) filter (where j.verdict is null),
    array_agg(rdq._death(j.task_id, j.queue, j.life, j.verdict)) filter (where j.verdict is not null),
    array_agg(j.error_class) filter (where j.verdict is not null),
    array_agg(j.task_id) filter (where j.next_no - j.first_no > 10),
    array_agg(j.next_no - 10) filter (where j.next_no - j.first_no > 10)
  into retries, retry_classes, deaths, death_classes, long_lives, their_eleventh
  from judged j;

  if coalesce(cardinality(retries), 0) + coalesce(cardinality(deaths), 0) < cardinality(endings) then
    perform rdq._check_conserved(
      array(select e.task_id from unnest(endings) e),
      coalesce(cardinality(retries), 0) + coalesce(cardinality(deaths), 0)
    );
  end if;
  if long_lives is not null then
    -- Kept are those of the first attempt and the last ten of a life.
    perform rdq._drop_stacks(long_lives, their_eleventh);
  end if;
  if retries is not null then
    -- The runner that reported them knows when they are due, and looks again by itself.
    perform rdq._schedule(retries, ahead => '0');
  end if;
  if deaths is not null then
    perform rdq._bury(deaths);
  end if;
  return query
    select r.task_id, 'PENDING', r.due_at, null::text, r.class from unnest(retry_classes, retries) as r (class)
    union all
    select d.task_id, 'DEAD', null, d.reason, d.class from unnest(death_classes, deaths) as d (class);
end
$$;

comment on function rdq._conclude(rdq.attempt[], timestamptz[], timestamptz[], text) is
'Ends attempts that did not succeed, whose tickets the caller has taken: numbers and records each (with _succeed() the one place that writes an attempt), decides, and writes the next ticket. give_up_ats are the tickets'' deadlines; not_befores, where not null, the earliest next start.';

create or replace function rdq._drop_stacks(task_ids uuid[], attempt_nos integer[]) returns void
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  update rdq.attempt a
  set stack = null
  where a.ctid = any (array(
    select o.row
    from unnest(task_ids, attempt_nos) as g (task_id, attempt_no)
    cross join lateral (
      select a.ctid as row
      from rdq.attempt a
      where a.task_id = g.task_id and a.attempt_no = g.attempt_no and a.stack is not null
      limit 1
    ) o
  ));
end
$$;

comment on function rdq._drop_stacks(uuid[], integer[]) is 'Forgets the stacks of these attempts.';

create or replace function rdq._schedule(tickets rdq.due[], ahead interval default '1 minute') returns void
language plpgsql
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
begin
  insert into rdq.due (task_id, queue, due_at, life, give_up_at)
  select t.task_id, t.queue, rdq._not_past(t.due_at), t.life, t.give_up_at
  from unnest(tickets) t;
  -- One small notice a queue and transaction (PostgreSQL folds equal ones), if any of it is due so soon that
  -- a runner may be asleep until later.
  perform pg_notify('rdq_due', d.queue)
  from (select distinct t.queue from unnest(tickets) t where t.due_at <= moment + ahead) d
  cross join lateral (select from rdq.queue q where q.queue = d.queue and q.notify limit 1) q
  cross join lateral rdq._is_busy(d.queue, moment, transaction_timestamp()) b (busy)
  where not b.busy;
end
$$;

comment on function rdq._schedule(rdq.due[], interval) is
'Writes tickets into rdq.due, and wakes listening runners (NOTIFY rdq_due with the name of the queue) unless they are busy.';

create or replace function rdq._not_past(due_at timestamptz) returns timestamptz
language sql volatile
-- An expression, so that it is inlined. The clock is read after the transaction has its number.
return greatest(due_at, clock_timestamp() - interval '1 second');

comment on function rdq._not_past(timestamptz) is
'When a ticket that is written now is due: never more than a second ago, which the low water relies on. Whoever writes into rdq.due asks it, after having written something else.';

create or replace function rdq._is_busy(queue text, moment timestamptz, began_at timestamptz) returns setof boolean
language sql stable
-- Inlined into its callers, who keep the planner from reading all of rdq.due.
as $$
  -- Commits with a notice go one after the other through the whole server, each until it is on disk. So a
  -- queue is not announced while tasks still wait in it that became due 20 to 50 ms ago: of those the runners
  -- were told, and whoever has work looks again by himself. What is
  --   younger   may be one that an idle runner takes this instant, by a claim that does not see ours yet
  --   older     may be one that nobody can take, which must not silence its queue
  --   of an earlier half second   does not count, so that tasks which nobody takes, and which were not
  --             announced for each other's sake, are followed by a notice within that time
  -- A transaction that is 20 ms old announces all that it schedules. What an earlier call in it has left, to
  -- be rolled back perhaps, would count otherwise: due at the moment of that call, or later, it is never in
  -- the window of a younger one.
  --
  -- One probe of due_by_time between two bounds, so of what was taken it walks 30 ms at most. As "exists" the planner
  -- may rather hash the queues of all tickets of that time.
  select moment - began_at < interval '20 ms' and (
    select d.task_id
    from rdq.due d
    where d.queue = _is_busy.queue
      and d.due_at >= greatest(moment - interval '50 ms', date_bin('500 ms', moment, 'epoch'))
      and d.due_at <= moment - interval '20 ms'
    order by d.due_at
    limit 1
  ) is not null
$$;

comment on function rdq._is_busy(text, timestamptz, timestamptz) is
'One row: whether the runners of a queue know already that there is work, so that they need no notice of what a transaction that began at began_at schedules at the moment.';

create or replace function rdq._death(task_id uuid, queue text, life integer, reason text) returns rdq.dead
language sql immutable
return row(task_id, queue, null, life, null, reason, null, null, null, null, null, null)::rdq.dead;

comment on function rdq._death(uuid, text, integer, text) is 'A ticket for _bury(), which fills in the rest.';

create or replace function rdq._bury(deaths rdq.dead[]) returns void
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  buried bigint;
  notices text[];
begin
  with buried as (
    insert into rdq.dead (
      task_id, queue, handler, life, dead_at, reason, error_class, error_type, message, fingerprint, code_version,
      redrive_id
    )
    select
      d.task_id, d.queue, t.handler, d.life, moment, d.reason, a.error_class, e.error_type, left(a.message, 200),
      rdq.fingerprint(t.handler, coalesce(e.error_type, d.reason), a.message), a.code_version,
      case when d.life > 0 then (
        select r.redrive_id
        from rdq.redriven r
        where r.task_id = d.task_id and r.life = d.life and r.outcome is null
        limit 1
      ) end
    from unnest(deaths) d
    cross join lateral (select t.handler from rdq.task t where t.id = d.task_id limit 1) t
    -- The last attempt that says something about the cause; a release does only where releases were it.
    left join lateral (
      select a.*
      from rdq.attempt a
      where a.task_id = d.task_id
        and (a.outcome <> 'RELEASED' or d.reason = 'UNROUTABLE')
      order by a.attempt_no desc
      limit 1
    ) a on true
    cross join lateral (select coalesce(a.error_type, nullif(a.outcome, 'FAILED')) as error_type) e
    returning dead.task_id, dead.queue, dead.handler, dead.reason
  ),
  -- Announced by kind, so that a mass burial is a few small notices.
  kind as (
    select b.queue, b.handler, b.reason, count(*) as size, min(b.task_id::text) as sample
    from buried b
    group by b.queue, b.handler, b.reason
  )
  select
    coalesce(sum(k.size), 0),
    array_agg(jsonb_build_object(
      'queue', k.queue, 'handler', k.handler, 'reason', k.reason, 'count', k.size, 'task_id', k.sample
    )::text) filter (where q.notify)
  into buried, notices
  from kind k
  left join lateral (select q.notify from rdq.queue q where q.queue = k.queue limit 1) q on true;
  perform rdq._check_conserved(array(select d.task_id from unnest(deaths) d), buried);
  perform rdq._free_keys(array(select d.task_id from unnest(deaths) d));
  perform rdq._note_redriven(array_agg(
    row(d.task_id, d.life, null, case d.reason when 'CANCELLED' then 'CANCELLED' else 'DEAD' end)::rdq.redriven
  ))
  from unnest(deaths) d
  where d.life > 0
  having count(*) > 0;
  perform pg_notify('rdq_dead', n.notice) from unnest(notices) n (notice);
end
$$;

comment on function rdq._bury(rdq.dead[]) is
'Makes dead letters of tasks whose tickets the caller has taken: the one place that buries. Frees their dedupe keys and announces them, where the queue''s notify is on (NOTIFY rdq_dead: queue, handler, reason, count and one task_id as JSON).';

create or replace function rdq._free_keys(task_ids uuid[]) returns void
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  delete from rdq.dedupe d where d.task_id = any (task_ids);
end
$$;

comment on function rdq._free_keys(uuid[]) is 'Lets go of the dedupe keys of tasks that are no longer live.';

create or replace function rdq._note_redriven(ends rdq.redriven[]) returns void
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  update rdq.redriven r
  set outcome = o.outcome
  from (
    select n.row, e.outcome
    from unnest(ends) e
    cross join lateral (
      select r.ctid as row
      from rdq.redriven r
      where r.task_id = e.task_id and r.life = e.life and r.outcome is null
      limit 1
    ) n
  ) o
  where r.ctid = o.row;
end
$$;

comment on function rdq._note_redriven(rdq.redriven[]) is
'Notes for the bulk redrives that sent them how lives ended. Only who has the ticket writes it, so nobody waits.';

create or replace function rdq._check_conserved(taken uuid[], written bigint) returns void
language plpgsql
as $$
declare
  missing bigint := coalesce(cardinality(taken), 0) - written;
begin
  if missing = 0 then
    return;
  end if;
  -- Somebody removed a task by hand and left its ticket. It must not stop the others.
  perform rdq._audit('drop_ticket', task_id => t.id, reason => 'the task of this ticket does not exist')
  from unnest(taken) t (id)
  where (select k.id from rdq.task k where k.id = t.id) is null;
  get diagnostics written = row_count;
  if written <> missing then
    raise exception 'rdq: % tickets were taken and not moved on; nothing was changed', missing - written
      using errcode = 'internal_error',
        hint = 'A row of rdq.queue was removed by hand: select * from rdq.doctor() says which.';
  end if;
end
$$;

comment on function rdq._check_conserved(uuid[], bigint) is
'Refuses to commit a transition that would lose a ticket. One whose task does not exist is dropped, with a row in the audit.';
