-- Maintain: one bounded step of everything periodic. Any runner calls it every few seconds; so can psql or
-- a scheduler in the database. It is safe to call from any number of places at once, since each pass
-- skips what another has locked, and to kill at any moment.

create or replace function rdq.tick(max_tasks integer default 1000, queues text[] default null)
returns table (reclaimed bigint, given_up bigint, redriven bigint, purged bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  chosen constant text[] := rdq._chosen_queues(queues, 'upkeep');
begin
  perform rdq._check_count('max_tasks', max_tasks);
  select count(*) into reclaimed from rdq._reclaim(max_tasks, chosen);
  given_up := rdq._give_up(max_tasks, chosen);
  redriven := rdq._advance_redrives(max_tasks);
  purged := rdq._retain(max_tasks, chosen);
  return next;
end
$$;

comment on function rdq.tick(integer, text[]) is
'One step of what is periodic, each part bounded by max_tasks: takes back expired leases, buries what is past its deadline, carries bulk redrives on, deletes what retention lets go. Returns how many of each. Errors: RD001, RD002, RD007.';

create or replace function rdq._give_up(max_tasks integer, queues text[]) returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  moment constant timestamptz := clock_timestamp();
  deaths rdq.dead[];
begin
  -- Walks due_by_deadline from its lower end, a queue at a time.
  with late as (
    delete from rdq.due d
    where d.ctid = any (array(
      select p.ticket
      from unnest(queues) q (queue)
      cross join lateral (
        select due.ctid as ticket
        from rdq.due
        where due.queue = q.queue and due.give_up_at <= moment
        order by due.give_up_at
        limit max_tasks
        for update skip locked
      ) p
      limit max_tasks
    ))
    returning d.*
  )
  select array_agg(rdq._death(l.task_id, l.queue, l.life, 'DEADLINE')) into deaths from late l;
  if deaths is not null then
    perform rdq._bury(deaths);
  end if;
  return coalesce(cardinality(deaths), 0);
end
$$;

comment on function rdq._give_up(integer, text[]) is 'Buries waiting tasks whose deadline has passed, in paused queues too.';

create or replace function rdq._advance_redrives(max_tasks integer) returns bigint
language plpgsql
as $$
declare
  chosen uuid;
begin
  -- One in a transaction: each locks its dead letters in the order of ids, and two after another would not.
  select r.redrive_id into chosen
  from rdq.redrive_run r
  where r.state = 'RUNNING'
  order by random()
  limit 1
  for update skip locked;
  return rdq._advance_redrive(chosen, max_tasks);
end
$$;

comment on function rdq._advance_redrives(integer) is 'A batch of one of the running bulk redrives, by chance; returns how many dead letters it looked at.';

create or replace function rdq._retain(max_tasks integer, queues text[]) returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  moment constant timestamptz := clock_timestamp();
  ended record;
  gone bigint;
  total bigint := 0;
begin
  -- Walks attempt_by_success and dead_by_queue from their lower ends, a queue at a time.
  for ended in
    select q.queue, e.task_ids, e.are_dead
    from rdq.queue q
    cross join lateral (
      select false, array(
        select a.task_id
        from rdq.attempt a
        where a.queue = q.queue and a.outcome = 'SUCCEEDED' and a.finished_at < moment - q.keep_succeeded
        order by a.finished_at
        limit max_tasks
        for update skip locked
      )
      union all
      select true, array(
        select d.task_id
        from rdq.dead d
        where d.queue = q.queue and d.dead_at < moment - q.keep_dead
        order by d.dead_at
        limit max_tasks
        for update skip locked
      )
    ) e (are_dead, task_ids)
    where q.queue = any (queues) and e.task_ids <> '{}'
  loop
    gone := rdq._purge(ended.task_ids[1:max_tasks - total]);
    total := total + gone;
    if ended.are_dead and gone > 0 then
      perform rdq._audit('retention', queue => ended.queue, affected => gone, reason => 'keep_dead has passed');
    end if;
    exit when total >= max_tasks;
  end loop;
  return total;
end
$$;

comment on function rdq._retain(integer, text[]) is
'Deletes tasks whose retention has passed, counted from their end. Dead letters only where keep_dead is set, and with a row in the audit.';
