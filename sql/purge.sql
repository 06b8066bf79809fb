-- Letting go: cancel ends a task that is live, purge deletes one that has ended. Nothing else deletes a
-- task, nothing is deleted silently, and every call is audited.
--
-- A purge first takes what stands for the task, its dead ticket or its SUCCEEDED attempt, and only then
-- deletes, so that of two purges, or a purge and a redrive, one wins.

create or replace function rdq.cancel(task_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task constant rdq.task := rdq._task(cancel.task_id);
  was text;
begin
  perform rdq._require('operator', task.queue);
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
    before => jsonb_build_object('status', was));
end
$$;

comment on function rdq.cancel(uuid, text) is
'Makes a dead letter (CANCELLED) of a task that is PENDING or IN_FLIGHT. A worker that holds it loses its claim: its next heartbeat says so, and its report is stale. Errors: RD003, RD004.';

create or replace function rdq.purge(task_id uuid, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task constant rdq.task := rdq._task(purge.task_id);
begin
  perform rdq._require('operator', task.queue);
  if rdq._purge(array[task.id]) = 0 then
    perform rdq._task(task.id);
    perform rdq._refuse('RD004',
      format('task %s is %s; nothing was changed', task.id, rdq._status(task.id)),
      'Only a task that is DEAD or SUCCEEDED can be purged; rdq.cancel ends a live one.');
  end if;
  perform rdq._audit('purge', queue => task.queue, task_id => task.id, reason => reason,
    before => jsonb_build_object('handler', task.handler, 'created_at', task.created_at));
end
$$;

comment on function rdq.purge(uuid, text) is
'Deletes a task that is DEAD or SUCCEEDED, with its payload and its whole history. Errors: RD003, RD004.';

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
    purged := rdq._purge(array(
      select d.task_id
      from rdq._dead_matching(filter, patterns) d
      where d.dead_at <= moment
      order by d.dead_at, d.task_id
      limit max_tasks
    ), died_until => moment);
    perform rdq._audit('purge_where', queue => queue, filter => filter, affected => purged, reason => reason);
  end if;
  select count(*) into remaining
  from rdq._dead_matching(filter, patterns) d
  where d.dead_at <= moment;
  return next;
end
$$;

comment on function rdq.purge_where(text, text, text, text, text, text, timestamptz, timestamptz, boolean, text, integer) is
'Deletes at most max_tasks (up to 10,000) of the dead letters that match, oldest first, and says how many remain: call it again, each time in a transaction of its own, until none does. dry_run only counts. The filter is that of dead_letters(); an empty one is refused. Errors: RD002.';

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

create or replace function rdq._purge(task_ids uuid[], died_until timestamptz default null) returns bigint
language plpgsql
set enable_seqscan = off
-- Any index but the task's own would have to sort.
set enable_sort = off
set jit = off
as $$
declare
  -- In the order of ids, like every bulk pass over dead letters.
  ids constant uuid[] := array(select distinct t.id from unnest(task_ids) t (id) order by t.id);
  ended uuid[];
begin
  ended := array(
    select d.task_id
    from unnest(ids) t (id)
    cross join lateral (
      select d.task_id
      from rdq.dead d
      where d.task_id = t.id and (died_until is null or d.dead_at <= died_until)
      limit 1
      for update
    ) d
  ) || array(
    select a.task_id
    from unnest(ids) t (id)
    cross join lateral (
      select a.task_id
      from rdq.attempt a
      where a.task_id = t.id and a.outcome = 'SUCCEEDED' and died_until is null
      order by a.attempt_no desc
      limit 1
      for update
    ) a
  );
  delete from rdq.dead d where d.task_id = any (ended);
  delete from rdq.attempt a where a.task_id = any (ended);
  delete from rdq.task t where t.id = any (ended);
  return cardinality(ended);
end
$$;

comment on function rdq._purge(uuid[], timestamptz) is
'Deletes those of the tasks that have ended (or only those that died until then), and says how many; the one place that deletes a task.';
