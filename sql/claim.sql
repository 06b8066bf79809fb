-- Claim: a worker takes due tasks, and with them a lease and a fencing token for each. No two workers get
-- the same one, since a claim deletes the ticket that it found. A claim also reclaims the leases of its
-- queues that expired, so a worker that is only psql recovers crashed work too (rule 4).

create or replace function rdq.claim(
  queues text[],
  runner text,
  max_tasks integer default 1,
  lease interval default null,
  code_version text default null,
  not_after timestamptz default null,
  spare interval default null
) returns table (
  task_id uuid,
  claim_token uuid,
  queue text,
  handler text,
  handler_version text,
  payload bytea,
  content_type text,
  headers jsonb,
  attempt_no integer,
  attempt_count integer,
  redrive_count integer,
  claimed_at timestamptz,
  lease_expires_at timestamptz,
  give_up_at timestamptz,
  created_at timestamptz,
  due_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  asked_at constant timestamptz := clock_timestamp();
  patterns constant text[] := case when not rdq._is_owner() then rdq._queue_patterns('worker') end;
  chosen constant text[] collate "C" := case when cardinality(queues) between 1 and 10000 then queues else rdq._chosen_queues(queues) end;
  known bigint;
  open_queues text[] collate "C";
  due_froms timestamptz[];
  overdue boolean;
  tickets rdq.due[];
  moment timestamptz;
  leased bigint;
  looked_at bigint := 0;
begin
  -- Of a claim of one task, more than half is PostgreSQL making plans and expressions ready, so it has few of them.
  -- A check that is "performed" takes 4 us, as a condition 1.
  if (rdq._is_worker(runner, code_version) and rdq._is_count(max_tasks) and rdq._is_lease(lease)) is not true
    or asked_at > not_after
  then
    perform rdq._check_claim(runner, max_tasks, lease, code_version, not_after);
  end if;
  select
    count(*),
    array_agg(w.queue) filter (where w.paused_at is null), array_agg(w.due_from) filter (where w.paused_at is null),
    bool_or((
      select l.task_id
      from rdq.lease l
      where l.queue = w.queue and l.expires_at between w.expires_from and asked_at
      order by l.expires_at
      limit 1
    ) is not null)
  into known, open_queues, due_froms, overdue
  from rdq._low_water_marks(chosen) w
  where rdq._permitted(w.queue, patterns);
  if known < cardinality(chosen) then
    -- Refuses, unless a name was given twice.
    perform rdq._chosen_queues(queues);
  end if;
  if overdue then
    perform rdq._reclaim(least(max_tasks, 100), chosen, spare);
  end if;
  -- A batch of which none can run is buried; an empty answer would say that nothing is due.
  while open_queues is not null loop
    tickets := rdq._take_due(open_queues, due_froms, max_tasks);
    exit when tickets = '{}';
    moment := clock_timestamp();
    -- A token for each, so that ids and tokens which a worker mixed up do not match: a tenth of a batch.
    return query
    with judged as materialized (
      select
        d.task_id, gen_random_uuid() as claim_token, d.queue, t.handler, t.handler_version, t.payload,
        rdq._content_type(t.content_type) as content_type, coalesce(t.headers, '{}') as headers, h.next_no, s.spent,
        d.life, moment + coalesce(claim.lease, q.lease) as expires_at, d.give_up_at, t.created_at, d.due_at
      from unnest(tickets) d
      cross join lateral (select t.* from rdq.task t where t.id = d.task_id limit 1) t
      cross join lateral (select q.* from rdq.queue q where q.queue = d.queue limit 1) q
      cross join lateral rdq._tally(d.task_id, d.life, d.has_history) h
      cross join lateral (select rdq._spent(h.runs, h.releases, q.max_releases) as spent) s
      where s.spent < coalesce(t.max_attempts, q.max_attempts)
        and (d.give_up_at is null or d.give_up_at > moment)
    ),
    written as (
      insert into rdq.lease (
        task_id, claim_token, queue, life, give_up_at, runner, code_version, claimed_at, expires_at
      )
      select
        j.task_id, j.claim_token, j.queue, j.life, j.give_up_at, claim.runner, claim.code_version, moment,
        j.expires_at
      from judged j
    )
    select
      j.task_id, j.claim_token, j.queue, j.handler, j.handler_version, j.payload, j.content_type, j.headers, j.next_no,
      j.spent::integer + 1, j.life, moment, j.expires_at, j.give_up_at, j.created_at, j.due_at
    from judged j;
    get diagnostics leased = row_count;
    if leased < cardinality(tickets) then
      perform rdq._bury_unfit(tickets, moment);
    end if;
    looked_at := looked_at + cardinality(tickets);
    exit when leased > 0 or looked_at >= 1000;
  end loop;
end
$$;

comment on function rdq.claim(text[], text, integer, interval, text, timestamptz, interval) is
'Takes at most max_tasks due tasks of the queues (null: all that the caller may work in), in turn so that none starves, for the time of lease (default: the queue''s). Paused queues are skipped; a task past its deadline or budget becomes a dead letter instead. attempt_no numbers the attempt in the history, attempt_count is the budget spent in this life, this claim included, due_at since when it could have been claimed. not_after, by the database''s clock, is for a worker that does not wait for ever: a claim that arrives later, held up by a proxy that was frozen, would be leased to nobody. spare is for a worker that was without the database: leases that ended within that time are not taken back yet, since their holders could not renew or report them. Errors: RD001, RD002, RD007, RD009.';

create or replace function rdq.next_due_at(queues text[]) returns timestamptz
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  chosen constant text[] collate "C" := rdq._chosen_queues(queues);
begin
  return (
    select min(d.due_at)
    from rdq._low_water_marks(chosen) w
    cross join lateral (
      select due.due_at from rdq.due where due.queue = w.queue and due.due_at >= w.due_from order by due.due_at limit 1
    ) d
    where w.paused_at is null
  );
end
$$;

comment on function rdq.next_due_at(text[]) is
'When the next task of the queues (null: all that the caller may work in) is due; may be past; null when none waits. Paused queues do not count. Errors: RD001, RD007.';

create or replace function rdq._chosen_queues(queues text[], capability text default 'worker') returns text[]
language plpgsql
set plan_cache_mode = force_generic_plan
as $$
declare
  patterns constant text[] := rdq._queue_patterns(capability);
  chosen text[];
begin
  if queues is null then
    if patterns = '{}' then
      perform rdq._refuse('RD007',
        format('role "%s" is not permitted to act as %s in any queue', rdq._caller(), capability),
        format('The owner or an admin of rdq can permit it: select rdq.grant_access(%L, ''worker'', ''{...}'');', rdq._caller()));
    end if;
    return array(select q.queue from rdq.queue q where rdq._permitted(q.queue, patterns));
  end if;
  if cardinality(queues) not between 1 and 10000 then
    perform rdq._refuse('RD002',
      case cardinality(queues) when 0 then 'queues is empty' else format('queues has %s elements', cardinality(queues)) end,
      'Name at least one queue, at most 10000, or give null for all.');
  end if;
  chosen := array(select q.queue from rdq.queue q where q.queue = any (queues collate "C") and rdq._permitted(q.queue, patterns));
  -- Or a name was given twice.
  if cardinality(chosen) < cardinality(queues) then
    perform rdq._require(capability, n.queue), rdq._queue(n.queue) from unnest(queues) n (queue);
  end if;
  return chosen;
end
$$;

comment on function rdq._chosen_queues(text[], text) is 'The queues that a caller names, or all in which it has the capability; refuses unknown (RD001) and forbidden (RD007) ones.';

create or replace function rdq._take_due(queues text[], due_froms timestamptz[], max_tasks integer) returns rdq.due[]
language plpgsql
-- With the settings of claim(), which keep the plan from flipping.
as $$
declare
  moment constant timestamptz := clock_timestamp();
  count constant integer := cardinality(queues);
  share integer := (max_tasks + count - 1) / count;
  wanted integer := max_tasks;
  taken rdq.due[] := '{}';
  batch rdq.due[];
begin
  -- An even share for each queue, then what is left to any that has more; in random order, so that a
  -- claim of one task serves the queues in turn too.
  loop
    -- Walks due_by_time from the low water, a queue at a time, and reads no ticket that it does not take.
    -- Sorting is off, because any other index would have to. The array is evaluated once, whatever the planner
    -- believes; as a join, an update … where id in (select … limit n) may run the limit again for each row and
    -- take far too many.
    with picked as (
      delete from rdq.due d
      where d.ctid = any (array(
        select p.ticket
        from (select w.* from unnest(queues, due_froms) w (queue, due_from) order by random()) w
        cross join lateral (
          select due.ctid as ticket
          from rdq.due
          where due.queue = w.queue and due.due_at between w.due_from and moment
          order by due.due_at
          limit share
          for update skip locked
        ) p
        limit wanted
      ))
      returning d.*
    )
    select array_agg(p::rdq.due) into batch from picked p;
    exit when batch is null;
    taken := taken || batch;
    wanted := wanted - cardinality(batch);
    exit when wanted = 0 or share = max_tasks;
    share := max_tasks;
  end loop;
  return taken;
end
$$;

comment on function rdq._take_due(text[], timestamptz[], integer) is 'Deletes and returns at most max_tasks due tickets of the queues, none due before its queue''s due_from.';

create or replace function rdq._bury_unfit(tickets rdq.due[], moment timestamptz) returns void
language plpgsql
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform rdq._bury(array(
    select rdq._death(
      d.task_id, d.queue, d.life, case when d.give_up_at <= moment then 'DEADLINE' else 'EXHAUSTED' end
    )
    from unnest(tickets) d
    where (select l.task_id from rdq.lease l where l.task_id = d.task_id) is null
  ));
end
$$;

comment on function rdq._bury_unfit(rdq.due[], timestamptz) is
'Buries those of a claim''s tickets that got no lease: past their deadline, or past a budget that was lowered meanwhile.';

create or replace function rdq._check_claim(
  runner text,
  max_tasks integer,
  lease interval,
  code_version text,
  not_after timestamptz
) returns void
language plpgsql
as $$
begin
  if clock_timestamp() > not_after then
    perform rdq._refuse('RD009',
      format('it is %s, and the claim was not to be answered after %s', clock_timestamp(), not_after),
      'Nothing was claimed. It waited on its way, or the clock by which not_after was chosen is not that of the database.');
  end if;
  perform rdq._check_worker(runner, code_version);
  perform rdq._check_count('max_tasks', max_tasks);
  perform rdq._check_lease(lease);
end
$$;

comment on function rdq._check_claim(text, integer, interval, text, timestamptz) is 'Refuses (RD002, RD009) what claim() does not do.';

create or replace function rdq._check_worker(runner text, code_version text) returns void
language plpgsql immutable
as $$
begin
  if length(code_version) > 240 then
    perform rdq._refuse('RD002',
      'code_version is longer than 240 characters', 'Give a short version, such as a release or a commit.');
  end if;
  if rdq._is_worker(runner, code_version) is not true then
    perform rdq._refuse('RD002',
      format('runner is %s', coalesce(length(runner) || ' characters long', 'null')),
      'Give the worker a name of 1 to 240 characters; it is shown in the history.');
  end if;
end
$$;

comment on function rdq._check_worker(text, text) is 'Refuses (RD002) what a worker says of itself when it cannot be recorded.';

create or replace function rdq._is_worker(runner text, code_version text) returns boolean
language sql immutable
return length(runner) between 1 and 240 and length(coalesce(code_version, '')) <= 240;

comment on function rdq._is_worker(text, text) is 'Whether what a worker says of itself can be recorded; null for no.';
