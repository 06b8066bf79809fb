-- Letting go: cancel ends a task that is live, purge deletes one that has ended, and so does retention.
-- Nothing else deletes a task. Nothing is deleted silently: every deletion is counted in the audit, under
-- its queue (rule 6).
--
-- A purge first takes what stands for the task, its dead ticket or its SUCCEEDED attempt, and only then
-- deletes, so that of two purges, or a purge and a redrive, one wins.

create or replace function rdq.cancel(task_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
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
end
$$;

comment on function rdq.cancel(uuid, text) is
'Makes a dead letter (CANCELLED) of a task that is PENDING or IN_FLIGHT. A worker that holds it loses its claim: its next heartbeat says so, and its report is stale. Errors: RD003, RD004, RD007.';

create or replace function rdq.purge(task_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task constant rdq.task := rdq._task(purge.task_id, 'operator');
  was record;
begin
  select p.* into was from rdq._purge(array[task.id]) p;
  if not found then
    perform rdq._task(task.id);
    perform rdq._refuse('RD004',
      format('task %s is %s; nothing was changed', task.id, rdq._status(task.id)),
      'Only a task that is DEAD or SUCCEEDED can be purged; rdq.cancel ends a live one.');
  end if;
  perform rdq._audit('purge', queue => task.queue, task_id => task.id, reason => reason,
    before => jsonb_strip_nulls(jsonb_build_object('handler', task.handler, 'created_at', task.created_at,
      'status', was.status, 'dead_reason', was.dead_reason)));
end
$$;

comment on function rdq.purge(uuid, text) is
'Deletes a task that is DEAD or SUCCEEDED, with its payload and its whole history. The audit keeps its id, handler and status, and the payloads of its edits until rdq.purge_audit. Errors: RD003, RD004, RD007.';

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
end
$$;

comment on function rdq.purge_where(text, text, text, text, text, text, timestamptz, timestamptz, boolean, text, integer) is
'Deletes at most max_tasks (up to 10,000) of the dead letters that match, the oldest, and no more than go within half of the statement_timeout, and says how many remain: call it again, each time in a transaction of its own, until none does. dry_run only counts. The filter is that of dead_letters(); an empty one is refused. A row of the audit for each queue says how many went. Errors: RD001, RD002, RD007.';

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
  attempt rdq.attempt;
begin
  select l.* into held from rdq.lease l where l.task_id = _cancel_in_flight.task_id for update;
  if not found then
    return false;
  end if;
  perform rdq._take(array[held.task_id], array[held.claim_token]);
  attempt := rdq._attempt(held, 'RELEASED', clock_timestamp(),
    rdq._clip(concat_ws(': ', 'cancelled by ' || rdq._actor(), reason), 4096));
  attempt.claim_token := held.claim_token;
  perform rdq._conclude(array[attempt], array[held.give_up_at], array[null::timestamptz], 'CANCELLED');
  return true;
end
$$;

comment on function rdq._cancel_in_flight(uuid, text) is 'Takes the claim from whoever holds a task and buries it; false when nobody holds it any more.';

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
        for update
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
        for update
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
'Deletes those of the tasks that have ended (or only those that died until then), as many as go until a time, and returns them; the one place that deletes a task.';
