-- Low water: from where claims and reclaims walk the tickets of a queue. An old snapshot that somebody holds
-- (a dump, a report, a replica) keeps every deleted ticket in its index, and every claim would walk over all
-- that was claimed since. The mark spares it those, and hides nothing:
--
--   A ticket is written by a transaction that has its number already, and is due no more than a second before
--   that (_not_past() sees to it); a lease ends after it. So once all transactions that ran at some moment have
--   ended, nothing that is older than that moment less a second can appear any more.
--
-- tick() looks. Where walking takes no time there is nothing to spare, and no mark. A clock that was set back
-- is all that could betray it: so a mark counts for a minute, and each minute one look starts from the bottom.

create or replace function rdq._low_water_marks(queues text[])
returns table (queue text, paused_at timestamptz, due_from timestamptz, expires_from timestamptz)
language sql stable
-- Inlined into its callers.
as $$
  select q.queue, q.paused_at, coalesce(w.due_from, '-infinity'), coalesce(w.expires_from, '-infinity')
  from rdq.queue q
  left join lateral (
    select w.due_from, w.expires_from
    from rdq.low_water w
    where w.queue = q.queue
      and w.looked_at between clock_timestamp() - interval '1 minute' and clock_timestamp()
    limit 1
  ) w on true
  where q.queue = any (queues)
$$;

comment on function rdq._low_water_marks(text[]) is
'For each of the queues whether it is paused, and from which time on there may be tickets, and leases: -infinity where no look says more.';

create or replace function rdq._raise_low_water(queues text[], worth interval default '1 millisecond') returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- The start of the transaction, since that comes before the snapshot at every isolation level.
  moment constant timestamptz := now();
  running constant xid8[] := array(select pg_snapshot_xip(pg_current_snapshot()));
  name text;
  mark rdq.low_water;
  settled_at timestamptz;
  began_at timestamptz;
  oldest_due timestamptz;
  oldest_lease timestamptz;
begin
  -- One looks at a time, and nobody waits for one that hangs.
  if not rdq._try_turn('low water') then
    return;
  end if;
  -- Those that have a mark, and of the others some, by chance: a look takes 17 us, and there may be thousands.
  for name in
    select w.queue from rdq.low_water w where w.queue = any (queues)
    union all (
      select q.queue
      from unnest(queues) q (queue)
      where not exists (select from rdq.low_water w where w.queue = q.queue)
      order by random()
      limit 100
    )
  loop
    select w.* into mark
    from rdq.low_water w
    where w.queue = name and w.looked_at between moment - interval '1 minute' and moment;
    if not found then
      mark := row(name, '-infinity', '-infinity', null, '-infinity', null);
    end if;
    -- What the last look could not see is younger than this, or was written by one who ran then.
    settled_at := case when not mark.running && running then mark.looked_at - interval '1 second' end;
    began_at := clock_timestamp();
    if mark.bottom_at < moment - interval '1 minute' then
      mark.bottom_at := moment;
    end if;
    select d.due_at into oldest_due
    from rdq.due d
    where d.queue = name and d.due_at >= case when mark.bottom_at = moment then '-infinity' else mark.due_from end
    order by d.due_at
    limit 1;
    select l.expires_at into oldest_lease
    from rdq.lease l
    where l.queue = name and l.expires_at >= case when mark.bottom_at = moment then '-infinity' else mark.expires_from end
    order by l.expires_at
    limit 1;
    if mark.bottom_at = moment and clock_timestamp() < began_at + worth then
      if mark.looked_at is not null then
        delete from rdq.low_water w where w.queue = name;
      end if;
      continue;
    end if;
    mark.due_from := least(oldest_due, coalesce(settled_at, mark.due_from));
    mark.expires_from := least(oldest_lease, coalesce(settled_at, mark.expires_from));
    insert into rdq.low_water values (name, mark.due_from, mark.expires_from, moment, mark.bottom_at, running)
    on conflict on constraint low_water_pkey do update
    set due_from = excluded.due_from,
        expires_from = excluded.expires_from,
        looked_at = excluded.looked_at,
        bottom_at = excluded.bottom_at,
        running = excluded.running;
  end loop;
end
$$;

comment on function rdq._raise_low_water(text[], interval) is
'Looks for the oldest ticket and lease of each queue, and notes from where the next walks may start. A queue whose walk takes less than worth has no mark.';
