-- Reclaim: a lease that expired becomes a LEASE_EXPIRED attempt, in the transaction that reschedules or
-- buries the task (rule 4). Any worker does it; none is special. Locked leases are skipped: whoever
-- has them is ending them. Tasks whose leases expired together come back spread over a rung of the ladder.
--
-- While the database was away nobody could renew a lease or report an outcome, so a lease that ended then says nothing
-- of its holder. After a start of the server, and as long as a worker asks for it (spare), those are left alone, until
-- whoever finished has had the time to say so.

create or replace function rdq.reclaim(max_tasks integer default 100, queues text[] default null, spare interval default null)
returns table (task_id uuid, status text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._check_count('max_tasks', max_tasks);
  return query select r.task_id, r.status from rdq._reclaim(max_tasks, rdq._chosen_queues(queues collate "C", 'upkeep'), spare) r;
end
$$;

comment on function rdq.reclaim(integer, text[], interval) is
'Takes back at most max_tasks expired leases of the queues (null: all that the caller may work in) and says what became of each task: PENDING, or DEAD after too many attempts that vanished. spare: those that ended within that time are left alone for now, as in claim(). For 15 seconds after the server has started, leases from before are left alone in any case. Errors: RD001, RD002, RD007.';

create or replace function rdq._reclaim(max_tasks integer, queues text[], spare interval default null)
returns table (task_id uuid, status text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  ended_by constant timestamptz := moment - least(greatest(spare, '0'), '1 day');
  claimed_from constant timestamptz := rdq._claimed_from(moment);
  reach integer := max_tasks;
  share integer := ceil(max_tasks::numeric / greatest(cardinality(queues), 1));
  expired uuid[];
  task_ids uuid[];
  claim_tokens uuid[];
  endings rdq.attempt[];
  give_up_ats timestamptz[];
begin
  -- At nearly every claim there is none, which a quarter of the time shows that the rest would take.
  if not exists (
    select
    from rdq._low_water_marks(queues) w
    cross join lateral (
      select
      from rdq.lease l
      where l.queue = w.queue and l.expires_at between w.expires_from and ended_by and l.claimed_at >= claimed_from
      limit 1
    ) l
  ) then
    return;
  end if;
  loop
    -- Walks lease_by_expiry from the low water, a queue at a time, an even share for each, and locks nothing yet.
    expired := array(
      select e.task_id
      from (select w.* from rdq._low_water_marks(queues) w order by random()) w
      cross join lateral (
        select l.task_id
        from rdq.lease l
        where l.queue = w.queue and l.expires_at between w.expires_from and ended_by and l.claimed_at >= claimed_from
        order by l.expires_at
        limit share
      ) e
      limit reach
    );
    if share < reach and cardinality(expired) < reach then
      -- What is left to any that has more.
      share := reach;
      continue;
    end if;
    -- Walks lease_pkey in the order of the ids, as _take() does. "is true" keeps it from another index.
    select array_agg(t.task_id), array_agg(t.claim_token) into task_ids, claim_tokens
    from (
      select l.task_id, l.claim_token
      from rdq.lease l
      where l.task_id = any (expired) and (l.expires_at <= ended_by) is true
      limit max_tasks
      for update skip locked
    ) t;
    exit when task_ids is not null or cardinality(expired) < reach;
    -- Others have locked all of those. Nothing is locked here yet, so those behind them may have any ids.
    reach := 4 * reach;
    share := reach;
  end loop;
  if task_ids is null then
    return;
  end if;
  select array_agg(rdq._vanished_attempt(l, moment)), array_agg(l.give_up_at)
  into endings, give_up_ats
  from unnest(rdq._take(task_ids, claim_tokens)) l;
  return query
    select c.task_id, c.status
    from rdq._conclude(endings, give_up_ats, array_fill(null::timestamptz, array[cardinality(endings)])) c;
end
$$;

comment on function rdq._reclaim(integer, text[], interval) is 'reclaim() without its checks.';

create or replace function rdq._restart_grace() returns interval
language sql immutable
-- Runners that lost the database try again every five seconds at least, and then report what has ended meanwhile.
return interval '15 seconds';

comment on function rdq._restart_grace() is 'For how long after the start of the server leases from before are left alone.';

create or replace function rdq._claimed_from(moment timestamptz) returns timestamptz
language sql stable
return case when moment < pg_postmaster_start_time() + rdq._restart_grace() then pg_postmaster_start_time() else '-infinity' end;

comment on function rdq._claimed_from(timestamptz) is
'Leases that were claimed earlier are not taken back now: the server has just started, and nobody could report to it before.';

create or replace function rdq._vanished_attempt(lease rdq.lease, moment timestamptz) returns rdq.attempt
language plpgsql immutable
as $$
declare
  attempt rdq.attempt := rdq._attempt(lease, 'LEASE_EXPIRED', moment,
    'The worker reported nothing before its lease ended; it may have crashed, hung or lost the database.');
begin
  attempt.detail := jsonb_build_object('lease_expired_at', lease.expires_at);
  attempt.claim_token := lease.claim_token;
  return attempt;
end
$$;

comment on function rdq._vanished_attempt(rdq.lease, timestamptz) is
'The attempt of a lease that expired. It keeps the claim token, by which a late report finds it.';
