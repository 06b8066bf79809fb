-- Maintain: one bounded step of everything periodic. Any runner calls it every few seconds; so can psql or
-- a scheduler in the database. It is safe to call from any number of places at once, since each pass
-- skips what another has locked, and to kill at any moment.

create or replace function rdq.tick(
  max_tasks integer default 1000,
  queues text[] default null,
  spare interval default null
) returns table (reclaimed bigint, given_up bigint, redriven bigint, purged bigint, problems text[])
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  chosen constant text[] collate "C" := rdq._chosen_queues(queues, 'upkeep');
  part text;
begin
  perform rdq._check_count('max_tasks', max_tasks);
  reclaimed := 0;
  given_up := 0;
  redriven := 0;
  purged := 0;
  -- Redrives first, since they take dedupe keys, in their order, and the others let go of some: a submit that waits for
  -- one of those may hold one of these.
  foreach part in array '{redrives,leases,deadlines,retention,low water}'::text[] loop
    begin
      case part
        when 'redrives' then redriven := rdq._advance_redrives(max_tasks);
        when 'leases' then reclaimed := (select count(*) from rdq._reclaim(max_tasks, chosen, spare));
        when 'deadlines' then given_up := rdq._give_up(max_tasks, chosen);
        when 'retention' then purged := rdq._retain(max_tasks, chosen);
        when 'low water' then perform rdq._raise_low_water(chosen);
      end case;
    exception when others then
      -- What is wrong with one part must not stop the others.
      problems := problems || format('%s: %s (%s)', part, rdq._clip(sqlerrm, 1024), sqlstate);
    end;
  end loop;
  return next;
end
$$;

comment on function rdq.tick(integer, text[], interval) is
'One step of what is periodic, each part bounded by max_tasks: takes back expired leases (but not those that ended within spare, as in claim()), buries what is past its deadline, carries bulk redrives on, deletes what retention lets go. Returns how many of each. A part that fails changes nothing, does not stop the others, and is in problems: "part: message (SQLSTATE)"; null where all went well. Errors: RD001, RD002, RD007.';

create or replace function rdq._give_up(max_tasks integer, queues text[]) returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
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
-- Walks redrive_run_open, and probes redriven_uncounted for each.
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  was rdq.redrive_run;
  run rdq.redrive_run;
begin
  -- One that stands still, to count what has ended of it.
  select r.* into was
  from rdq.redrive_run r
  where r.settled_at is null and r.state <> 'RUNNING'
    and (
      select o.redrive_id from rdq.redriven o where o.redrive_id = r.redrive_id and o.outcome is not null limit 1
    ) is not null
  order by random()
  limit 1
  for update skip locked;
  if found then
    perform rdq._advance_redrive(was, max_tasks);
  end if;
  -- And one that runs. One in a transaction: each locks its dead letters in the order of ids, and two after
  -- another would not.
  select r.* into was
  from rdq.redrive_run r
  where r.settled_at is null and r.state = 'RUNNING'
  order by random()
  limit 1
  for update skip locked;
  if not found then
    return 0;
  end if;
  run := rdq._advance_redrive(was, max_tasks);
  if run.state = 'DONE' then
    perform rdq._audit('finish_redrive', queue => run.filter ->> 'queue', redrive_id => run.redrive_id,
      affected => run.sent, after => rdq._redrive_counts(run));
  end if;
  return run.sent + run.key_held - was.sent - was.key_held;
end
$$;

comment on function rdq._advance_redrives(integer) is
'A step of one of the running bulk redrives, by chance, and the count of one that stands still; returns how many dead letters were taken up.';

create or replace function rdq._retain(max_tasks integer, queues text[]) returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  ended record;
  total bigint := 0;
begin
  -- Walks attempt_by_success and dead_by_queue from their lower ends, a queue at a time.
  for ended in
    select q.queue, e.task_ids, e.setting
    from rdq.queue q
    cross join lateral (
      select 'keep_succeeded', array(
        select a.task_id
        from rdq.attempt a
        where a.queue = q.queue and a.outcome = 'SUCCEEDED' and a.finished_at < moment - q.keep_succeeded
          -- Not one by one as they end: each batch is a row of the audit.
          and moment - q.keep_succeeded - least(q.keep_succeeded / 24, interval '1 hour') > (
            select o.finished_at
            from rdq.attempt o
            where o.queue = q.queue and o.outcome = 'SUCCEEDED'
            order by o.finished_at
            limit 1
          )
        order by a.finished_at
        limit max_tasks
        for update skip locked
      )
      union all
      select 'keep_dead', array(
        select d.task_id
        from rdq.dead d
        where d.queue = q.queue and d.dead_at < moment - q.keep_dead
          -- What a bulk redrive that is under way may still send.
          and d.dead_at > coalesce((
            select max(r.began_at)
            from rdq.redrive_run r
            where r.settled_at is null and r.state in ('RUNNING', 'PAUSED', 'HALTED')
              and coalesce(r.filter ->> 'queue' = q.queue, rdq._permitted(q.queue, r.queues))
          ), '-infinity')
        order by d.dead_at
        limit max_tasks
        for update skip locked
      )
    ) e (setting, task_ids)
    where q.queue = any (queues) and e.task_ids <> '{}'
  loop
    total := total + rdq._purge_audited('retention', ended.task_ids[1:max_tasks - total], reason => ended.setting || ' has passed');
    exit when total >= max_tasks;
  end loop;
  return total;
end
$$;

comment on function rdq._retain(integer, text[]) is
'Deletes tasks whose retention has passed, counted from their end, with a row in the audit for each batch of a queue. Dead letters only where keep_dead is set, and none that an open bulk redrive of their queue may still send; what succeeded at most an hour late (a 24th of keep_succeeded).';
