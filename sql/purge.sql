-- Letting go: cancel ends a task that is live, purge deletes one that has ended, and so does retention.
-- Nothing else deletes a task. Nothing is deleted silently: every deletion is counted in the audit, under
-- its queue (rule 6).
--
-- A purge first takes what stands for the task, its dead ticket or its SUCCEEDED attempt, and only then
-- deletes, so that of two purges, or a purge and a redrive, one wins.

create or replace function rdq.cancel(task_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
  task constant rdq.task := rdq._task(cancel.task_id, 'operator');
  was text;
begin
  -- Each turn waits for whoever has the ticket, and then looks where it went.
  loop
    was := rdq._status(task.id);
    exit when was = 'PENDING' and rdq._cancel_pending(task.id);
    exit when was = 'IN_FLIGHT' and rdq._cancel_in_flight(task.id, reason);
    if was in ('SUCCEEDED', 'DEAD') then
      perform rdq._refuse('RD004',
        format('task %s is %s; nothing was changed', task.id, was), 'Only a task that is PENDING or IN_FLIGHT can be cancelled.');
    end if;
    perform rdq._task(task.id);
  end loop;
  perform rdq._audit('cancel', queue => task.queue, task_id => task.id, reason => reason,
    before => jsonb_build_object('status', was),
    after => jsonb_build_object('status', 'DEAD', 'dead_reason', 'CANCELLED'));
exception when lock_not_available then
  perform rdq._refuse_busy(format('task %s', cancel.task_id));
end
$$;

comment on function rdq.cancel(uuid, text) is
'Makes a dead letter (CANCELLED) of a task that is PENDING or IN_FLIGHT. A worker that holds it loses its claim: its next heartbeat says so, and its report is stale. Many are cancelled by rdq.cancel_where. Errors: RD003, RD004, RD007, RD010.';

create or replace function rdq.cancel_where(
  queue text default null,
  handler text default null,
  status text default null,
  since timestamptz default null,
  until timestamptz default null,
  dry_run boolean default false,
  reason text default null,
  max_tasks integer default 10000
) returns table (cancelled bigint, remaining bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
  filter constant jsonb := jsonb_strip_nulls(jsonb_build_object(
    'queue', queue, 'handler', handler, 'status', status, 'since', since, 'until', until
  ));
  queues text[] collate "C";
  gone record;
begin
  perform rdq._check_live_filter(filter);
  perform rdq._check_count('max_tasks', max_tasks);
  queues := case when queue is null then rdq._chosen_queues(null, 'operator') else array[queue] end;
  cancelled := 0;
  if not dry_run then
    for gone in
      select c.queue, count(*) as tasks
      from rdq._cancel_many(
        array(select m.task_id from rdq._live_matching(queues, filter) m where m.status = 'PENDING' limit max_tasks),
        array(select m.task_id from rdq._live_matching(queues, filter) m where m.status = 'IN_FLIGHT' limit max_tasks),
        max_tasks, reason
      ) c
      group by c.queue
      order by c.queue
    loop
      perform rdq._audit('cancel_where', queue => gone.queue, filter => filter, affected => gone.tasks, reason => reason);
      cancelled := cancelled + gone.tasks;
    end loop;
  end if;
  select count(*) into remaining from rdq._live_matching(queues, filter);
  return next;
end
$$;

comment on function rdq.cancel_where(text, text, text, timestamptz, timestamptz, boolean, text, integer) is
'Cancels at most max_tasks (up to 10,000) of the live tasks that match, as cancel() does, and says how many remain: call it again, each time in a transaction of its own, until none does. status is PENDING or IN_FLIGHT (null: both); since and until bound created_at. A task that ends meanwhile, or that another transaction has locked, is passed over. dry_run only counts. An empty filter is refused. A row of the audit for each queue says how many were cancelled. Errors: RD001, RD002, RD007.';

create or replace function rdq.purge(task_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
  task constant rdq.task := rdq._task(purge.task_id, 'operator');
  was record;
begin
  -- _purge() passes over what is locked; one that was named is waited for.
  perform from rdq.dead d where d.task_id = task.id for update;
  if not found then
    perform from rdq.attempt a where a.task_id = task.id and a.outcome = 'SUCCEEDED' for update;
  end if;
  if found then
    select p.* into was from rdq._purge(array[task.id]) p;
  end if;
  if not found then
    perform rdq._task(task.id);
    perform rdq._refuse('RD004',
      format('task %s is %s; nothing was changed', task.id, rdq._status(task.id)),
      'Only a task that is DEAD or SUCCEEDED can be purged; rdq.cancel ends a live one.');
  end if;
  perform rdq._audit('purge', queue => task.queue, task_id => task.id, reason => reason,
    before => jsonb_strip_nulls(jsonb_build_object('handler', task.handler, 'created_at', task.created_at,
      'status', was.status, 'dead_reason', was.dead_reason)));
exception when lock_not_available then
  perform rdq._refuse_busy(format('task %s', purge.task_id));
end
$$;

comment on function rdq.purge(uuid, text) is
'Deletes a task that is DEAD or SUCCEEDED, with its payload and its whole history. The audit keeps its id, handler and status, and the payloads of its edits until rdq.purge_audit. Errors: RD003, RD004, RD007, RD010.';

create or replace function rdq.purge_where(
  queue text default null,
  handler text default null,
  error_type text default null,
  error_class text default null,
  dead_reason text default null,
  fingerprint text default null,
  since timestamptz default null,
  until timestamptz default null,
  dry_run boolean default false,
  reason text default null,
  max_tasks integer default 10000
) returns table (purged bigint, remaining bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
set lock_timeout = '5s'
as $$
declare
  moment constant timestamptz := clock_timestamp();
  filter constant jsonb := rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until);
  patterns constant text[] := rdq._queue_patterns('operator');
begin
  perform rdq._check_action_filter(filter);
  perform rdq._check_count('max_tasks', max_tasks);
  purged := 0;
  if not dry_run then
    purged := rdq._purge_audited('purge_where', array(
      select d.task_id
      from rdq._dead_matching(filter, patterns) d
      where d.dead_at <= moment
      order by d.dead_at, d.task_id
      limit max_tasks
    ), moment, filter, reason, until => statement_timestamp() + nullif(current_setting('statement_timeout')::interval, '0') / 2);
  end if;
  select count(*) into remaining
  from rdq._dead_matching(filter, patterns) d
  where d.dead_at <= moment;
  return next;
exception when lock_not_available then
  perform rdq._refuse_busy('the history of a dead letter that matches');
end
$$;

comment on function rdq.purge_where(text, text, text, text, text, text, timestamptz, timestamptz, boolean, text, integer) is
'Deletes at most max_tasks (up to 10,000) of the dead letters that match, the oldest, and no more than go within half of the statement_timeout, and says how many remain: call it again, each time in a transaction of its own, until none does. What another transaction has locked remains. dry_run only counts. The filter is that of dead_letters(); an empty one is refused. A row of the audit for each queue says how many went. Errors: RD001, RD002, RD007.';

create or replace function rdq._cancel_pending(task_id uuid) returns boolean
language plpgsql
as $$
declare
  ticket rdq.due;
begin
  delete from rdq.due d where d.task_id = _cancel_pending.task_id returning d.* into ticket;
  if not found then
    return false;
  end if;
  perform rdq._bury(array[rdq._death(ticket.task_id, ticket.queue, ticket.life, 'CANCELLED')]);
  return true;
end
$$;

comment on function rdq._cancel_pending(uuid) is 'Buries a task that waits; false when it no longer does.';

create or replace function rdq._cancel_in_flight(task_id uuid, reason text) returns boolean
language plpgsql
as $$
declare
  held rdq.lease;
begin
  select l.* into held from rdq.lease l where l.task_id = _cancel_in_flight.task_id for update;
  if not found then
    return false;
  end if;
  perform rdq._take(array[held.task_id], array[held.claim_token]);
  perform rdq._conclude(array[rdq._cancelled_attempt(held, clock_timestamp(), reason)], array[held.give_up_at], array[null::timestamptz], 'CANCELLED');
  return true;
end
$$;

comment on function rdq._cancel_in_flight(uuid, text) is 'Takes the claim from whoever holds a task and buries it; false when nobody holds it any more.';

create or replace function rdq._check_live_filter(filter jsonb) returns void
language plpgsql stable
as $$
begin
  perform rdq._check_action_filter(filter);
  if filter ->> 'status' not in ('PENDING', 'IN_FLIGHT') then
    perform rdq._refuse('RD002',
      format('status is %s', left(filter ->> 'status', 60)), 'Give PENDING or IN_FLIGHT, or null for both: nothing else can be cancelled.');
  end if;
  if filter ? 'handler' then
    perform rdq._check_name('handler', filter ->> 'handler');
  end if;
end
$$;

comment on function rdq._check_live_filter(jsonb) is 'Refuses (RD001, RD002, RD007) a filter over live tasks that is too little to act on, or can never match.';

create or replace function rdq._live_matching(queues text[], filter jsonb)
returns table (task_id uuid, queue text, status text)
language sql stable
-- Walks the tickets of the queues, and looks at the task of each.
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
  select l.task_id, l.queue, l.status
  from (
    select d.task_id, d.queue, 'PENDING' as status from rdq.due d where d.queue = any (queues)
    union all
    select l.task_id, l.queue, 'IN_FLIGHT' from rdq.lease l where l.queue = any (queues)
  ) l
  cross join lateral (select t.handler, t.created_at from rdq.task t where t.id = l.task_id limit 1) t
  where coalesce(l.status = filter ->> 'status', true)
    and coalesce(t.handler = filter ->> 'handler', true)
    and coalesce(t.created_at >= (filter ->> 'since')::timestamptz, true)
    and coalesce(t.created_at < (filter ->> 'until')::timestamptz, true)
$$;

comment on function rdq._live_matching(text[], jsonb) is 'The live tasks of some queues that match a filter.';

create or replace function rdq._cancel_many(pending uuid[], in_flight uuid[], max_tasks integer, reason text)
returns table (queue text, task_id uuid)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  held uuid[];
  tokens uuid[];
  leases rdq.lease[] := '{}';
  tickets rdq.due[];
begin
  -- Walks lease_pkey in the order of the ids, as _take() does. All that is locked is passed over.
  select array_agg(l.task_id), array_agg(l.claim_token) into held, tokens
  from (
    select l.task_id, l.claim_token
    from rdq.lease l
    where l.task_id = any (in_flight)
    limit max_tasks
    for update skip locked
  ) l;
  if held is not null then
    leases := rdq._take(held, tokens);
  end if;
  with taken as (
    delete from rdq.due d
    where d.ctid = any (array(
      select d.ctid from rdq.due d where d.task_id = any (pending) limit max_tasks - cardinality(leases) for update skip locked
    ))
    returning d as ticket
  )
  select array_agg(t.ticket) into tickets from taken t;
  perform rdq._conclude(
    array_agg(rdq._cancelled_attempt(l, moment, reason)), array_agg(l.give_up_at),
    array_fill(null::timestamptz, array[count(*)::integer]), 'CANCELLED'
  )
  from unnest(leases) l
  having count(*) > 0;
  if tickets is not null then
    perform rdq._bury(array(select rdq._death(d.task_id, d.queue, d.life, 'CANCELLED') from unnest(tickets) d));
  end if;
  return query
  select l.queue, l.task_id from unnest(leases) l
  union all
  select d.queue, d.task_id from unnest(tickets) d;
end
$$;

comment on function rdq._cancel_many(uuid[], uuid[], integer, text) is
'Makes dead letters of at most so many tasks that were waiting or held when they were chosen, if they still are.';

create or replace function rdq._cancelled_attempt(lease rdq.lease, moment timestamptz, reason text) returns rdq.attempt
language plpgsql stable
as $$
declare
  attempt rdq.attempt := rdq._attempt(lease, 'RELEASED', moment,
    rdq._clip(concat_ws(': ', 'cancelled by ' || rdq._actor(), reason), 4096));
begin
  attempt.claim_token := lease.claim_token;
  return attempt;
end
$$;

comment on function rdq._cancelled_attempt(rdq.lease, timestamptz, text) is
'The attempt of a claim that was taken from its holder. It keeps the claim token, by which a late report finds it.';

create or replace function rdq._purge_audited(
  action text,
  task_ids uuid[],
  died_until timestamptz default null,
  filter jsonb default null,
  reason text default null,
  until timestamptz default null
) returns bigint
language plpgsql
as $$
declare
  gone record;
  total bigint := 0;
begin
  for gone in
    select p.queue, count(*) as tasks
    from rdq._purge(task_ids, died_until, until) p
    group by p.queue
    order by p.queue
  loop
    perform rdq._audit(action, queue => gone.queue, filter => filter, affected => gone.tasks, reason => reason);
    total := total + gone.tasks;
  end loop;
  return total;
end
$$;

comment on function rdq._purge_audited(text, uuid[], timestamptz, jsonb, text, timestamptz) is
'Deletes as _purge() does, with a row in the audit for each queue from which something went; returns how many went.';

create or replace function rdq._purge(task_ids uuid[], died_until timestamptz default null, until timestamptz default null)
returns table (task_id uuid, queue text, status text, dead_reason text)
language plpgsql
set enable_seqscan = off
-- Any index but the task's own would have to sort.
set enable_sort = off
set jit = off
as $$
declare
  step constant integer := 500;
  -- In the order of ids, like every bulk pass over dead letters.
  ids constant uuid[] := array(select distinct t.id from unnest(task_ids) t (id) order by t.id);
  batch uuid[];
  dead uuid[];
  succeeded uuid[];
begin
  for place in 1 .. cardinality(ids) by step loop
    exit when place > 1 and clock_timestamp() > until;
    batch := ids[place : place + step - 1];
    dead := array(
      select d.task_id
      from unnest(batch) t (id)
      cross join lateral (
        select d.task_id
        from rdq.dead d
        where d.task_id = t.id and (died_until is null or d.dead_at <= died_until)
        limit 1
        for update skip locked
      ) d
    );
    succeeded := array(
      select a.task_id
      from unnest(batch) t (id)
      cross join lateral (
        select a.task_id
        from rdq.attempt a
        where a.task_id = t.id and a.outcome = 'SUCCEEDED' and died_until is null
        order by a.attempt_no desc
        limit 1
        for update skip locked
      ) a
    );
    return query
    delete from rdq.dead d where d.task_id = any (dead) returning d.task_id, d.queue, 'DEAD', d.reason;
    return query
    select s.id, a.queue, 'SUCCEEDED', null::text
    from unnest(succeeded) s (id)
    cross join lateral (
      select a.queue from rdq.attempt a where a.task_id = s.id and a.outcome = 'SUCCEEDED' limit 1
    ) a;
    delete from rdq.attempt a where a.task_id = any (dead || succeeded);
    delete from rdq.task t where t.id = any (dead || succeeded);
  end loop;
end
$$;

comment on function rdq._purge(uuid[], timestamptz, timestamptz) is
'Deletes those of the tasks that have ended (or only those that died until then), as many as go until a time, and returns them; what is locked is passed over. The one place that deletes a task.';
