-- Recent stats: how the queues stand, for those who ask again and again. Counting a million tasks takes 0.1 s, a
-- hundred million 10 s, so where it takes long it is done now and then, and what was counted is stored for all to
-- read. It is an observation, with its time and what it took, and never a counter that somebody would have to keep.
--
--   quick    less than 20 ms: nothing is stored, every look counts
--   slow     a look shows what is stored, and counts itself only where that is older than 200 times what it took
--            (at least 90 s, so that who looks once a minute does not count)
--   recount  refresh_queue_stats(), as soon as it is older than 100 times what it took: however many look, one
--            core counts for a hundredth of the time
--
-- What is bounded is asked in any case: which queues there are, pauses, leases, the oldest task that is due.

create or replace function rdq.recent_queue_stats()
returns table (
  queue text, paused boolean, due bigint, scheduled bigint, in_flight bigint, expired bigint, dead bigint,
  oldest_due_age interval, oldest_dead_age interval, counted_at timestamptz, recount_due boolean
)
-- Writes nothing, so that a standby answers too.
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := statement_timestamp();
  patterns constant text[] := rdq._queue_patterns('viewer');
  stored rdq.queue_count;
  counts rdq._queue_counts[];
  began_at timestamptz;
  recount boolean;
begin
  select c.* into stored
  from rdq.queue_count c
  where c.counted_at between moment - greatest(200 * c.took, interval '90 seconds') and moment;
  counts := array(
    select s from jsonb_populate_recordset(null::rdq._queue_counts, stored.counts) s where rdq._permitted(s.queue, patterns)
  );
  -- The queues that are new since then, or all.
  began_at := clock_timestamp();
  counts := counts || array(
    select c
    from rdq._queue_counts c
    where rdq._permitted(c.queue, patterns) and c.queue not in (select s.queue from unnest(counts) s)
  );
  recount := coalesce(stored.counted_at + 100 * stored.took < moment, clock_timestamp() - began_at >= rdq._slow_count());
  return query
  select
    m.queue, m.paused_at is not null, c.due, c.scheduled, l.in_flight, l.expired, c.dead,
    moment - d.due_at, moment - c.oldest_dead_at, c.counted_at, recount
  from unnest(counts) c
  -- While somebody holds an old snapshot: after 40,000 tasks 3 ms, and 40 without the marks.
  cross join lateral rdq._low_water_marks(array[c.queue]) m
  left join lateral (
    select d.due_at
    from rdq.due d
    where d.queue = c.queue and d.due_at between m.due_from and moment
    order by d.due_at
    limit 1
  ) d on true
  cross join lateral (
    select count(*) as in_flight, count(*) filter (where l.expires_at <= moment) as expired
    from rdq.lease l
    where l.queue = c.queue and l.expires_at >= m.expires_from
  ) l;
end
$$;

comment on function rdq.recent_queue_stats() is
'As rdq.queue_stats, but where counting takes more than 20 ms, due, scheduled, dead and the oldest dead letter are as they were at counted_at. recount_due: call rdq.refresh_queue_stats() when there is time for it.';

create or replace function rdq.refresh_queue_stats() returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
set lock_timeout = '1s'
as $$
declare
  moment constant timestamptz := statement_timestamp();
  began_at timestamptz;
  counts jsonb;
  took interval;
begin
  -- One counts at a time, and nobody waits for it.
  if current_setting('transaction_read_only')::boolean
    or not rdq._try_turn('queue stats')
    or exists (select from rdq.queue_count c where c.counted_at between moment - 100 * c.took and moment)
  then
    return;
  end if;
  -- Now, so that no wait for a lock counts as counting.
  lock table rdq.queue, rdq.due, rdq.dead in access share mode;
  began_at := clock_timestamp();
  counts := (select coalesce(jsonb_agg(to_jsonb(c)), '[]') from rdq._queue_counts c);
  took := clock_timestamp() - began_at;
  delete from rdq.queue_count;
  if took >= rdq._slow_count() then
    insert into rdq.queue_count values (moment, took, counts);
  end if;
end
$$;

comment on function rdq.refresh_queue_stats() is
'Counts what rdq.recent_queue_stats() shows, unless somebody does so just now, or did within 100 times what it took. Where counting is quick, nothing is stored. Does nothing on a standby.';

create or replace function rdq._slow_count() returns interval
language sql immutable
return interval '20 milliseconds';

comment on function rdq._slow_count() is 'From when on counting is slow enough to be done now and then only.';
