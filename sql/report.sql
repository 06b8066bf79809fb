-- Report: a worker says how its attempts ended. The claim token decides, not the clock (rule 2): a report
-- counts as long as nobody has taken the lease. A stale one changes nothing, raises nothing, and is
-- noted on the attempt that was recorded in its place.
--
-- A lease that another transaction is ending is waited for, since only then is it known whether a report is stale:
-- for five seconds at most (55P03, lock_not_available; nothing was recorded, so report again). An operator's
-- transaction that cancels and stays open must not hold up the reports of a whole runner.

create or replace function rdq.complete(task_id uuid, claim_token uuid) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
begin
  if rdq._succeed(rdq._take(array[task_id], array[claim_token]), clock_timestamp()) <> '{}' then
    return true;
  end if;
  perform rdq._check_claims(array[task_id], array[claim_token]);
  perform rdq._note_late(array[task_id], array[claim_token], array['SUCCEEDED']);
  return false;
end
$$;

comment on function rdq.complete(uuid, uuid) is
'Reports that the attempt succeeded. False: stale, the claim was lost and nothing changed.';

create or replace function rdq.fail(
  task_id uuid,
  claim_token uuid,
  error_type text,
  message text default null,
  stack text default null,
  detail jsonb default null,
  error_class text default null,
  retry_after interval default null
) returns table (status text, next_attempt_at timestamptz, dead_reason text, stale boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
  -- Cut first: a jsonb string has a limit of its own, below that of text.
  failure constant jsonb := jsonb_strip_nulls(jsonb_build_object(
    'type', rdq._clip(error_type, 255),
    'message', rdq._clip(message, 4096),
    'stack', rdq._clip(stack, 65536),
    'class', error_class,
    'retry_after', extract(epoch from retry_after)
  )) || case when detail is null then '{}' else jsonb_build_object('detail', rdq._clip_detail(detail)) end;
begin
  perform rdq._check_class('error_class', error_class);
  return query
  select f.status, f.next_attempt_at, f.dead_reason, false
  from rdq._fail(rdq._take(array[task_id], array[claim_token]), array[failure], clock_timestamp()) f;
  if not found then
    perform rdq._check_claims(array[task_id], array[claim_token]);
    perform rdq._note_late(array[task_id], array[claim_token], array['FAILED']);
    return query select rdq._status_for_worker(task_id), null::timestamptz, null::text, true;
  end if;
end
$$;

comment on function rdq.fail(uuid, uuid, text, text, text, jsonb, text, interval) is
'Reports that the attempt failed, and returns what becomes of the task. error_class (TRANSIENT, PERMANENT, AMBIGUOUS) wins over the queue''s rules; retry_after is a lower bound of the delay, capped at a day; the queue''s jitter comes on top. Message, stack and detail are cut at 4, 64 and 16 KiB. Errors: RD002.';

create or replace function rdq.report(task_ids uuid[], claim_tokens uuid[], failures jsonb[])
returns table (
  task_id uuid,
  status text,
  next_attempt_at timestamptz,
  dead_reason text,
  stale boolean,
  error_class text
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  failed constant boolean := array_remove(array_remove(failures, null), 'null') <> '{}';
  leases rdq.lease[];
  recorded boolean;
begin
  perform rdq._check_claims(task_ids, claim_tokens);
  if cardinality(failures) is distinct from cardinality(task_ids) then
    perform rdq._refuse('RD002',
      format('failures has %s elements, task_ids %s', coalesce(cardinality(failures), 0), cardinality(task_ids)),
      'Give one failure for each task, null for a success.');
  end if;
  if failed then
    if pg_column_size(failures) > 262144 then
      failures := array(select rdq._clip_failure(f.failure) from unnest(failures) with ordinality as f (failure, place) order by f.place);
    end if;
    -- Called for what is wrong only; for each, it would be a tenth of the report.
    perform rdq._check_failure(format('failures[%s]', f.place), f.failure)
    from unnest(failures) with ordinality as f (failure, place)
    where f.failure <> 'null' and (jsonb_typeof(f.failure) <> 'object' or not rdq._is_class(f.failure ->> 'class'));
  end if;
  leases := rdq._take(task_ids, claim_tokens);
  if failed or cardinality(leases) < cardinality(task_ids) then
    return query select r.* from rdq._report_each(task_ids, claim_tokens, failures, leases, moment) r;
    return;
  end if;
  -- The usual batch: all succeeded, and all were held. A task that was removed by hand is not recorded.
  recorded := cardinality(rdq._succeed(leases, moment)) = cardinality(leases);
  return query
  select
    g.task_id, case when recorded then 'SUCCEEDED' else rdq._status_for_worker(g.task_id) end, null::timestamptz, null::text,
    not recorded and rdq._status(g.task_id) is null, null::text
  from unnest(task_ids) g (task_id);
end
$$;

comment on function rdq.report(uuid[], uuid[], jsonb[]) is
'Many completes and fails in one round trip, answered in order. A null failure is a success, else {"type", "message", "stack", "detail", "class", "retry_after"} (retry_after in seconds, or an interval). stale: the claim was lost, nothing changed, status is what the task is now. error_class: what a failure counts as, by its own class or the queue''s rules. Errors: RD002.';

create or replace function rdq._report_each(
  task_ids uuid[],
  claim_tokens uuid[],
  failures jsonb[],
  leases rdq.lease[],
  moment timestamptz
) returns table (
  task_id uuid,
  status text,
  next_attempt_at timestamptz,
  dead_reason text,
  stale boolean,
  error_class text
)
language plpgsql
-- What it joins itself are arrays, of any length: by hashing, whatever length the planner expects.
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  places bigint[];
  held uuid[];
  succeeded rdq.lease[];
  failed rdq.lease[];
  their_failures jsonb[];
  successes uuid[];
begin
  select
    array_agg(f.place), array_agg(l.task_id), array_agg(l::rdq.lease) filter (where f.failure is null),
    array_agg(l::rdq.lease) filter (where f.failure is not null),
    array_agg(f.failure) filter (where f.failure is not null)
  into places, held, succeeded, failed, their_failures
  from (
    -- Of a pair that was given twice the first counts. A null that came as JSON is one too.
    select distinct on (g.task_id, g.claim_token)
      g.task_id, g.claim_token, nullif(g.failure, 'null') as failure, g.place
    from unnest(task_ids, claim_tokens, failures) with ordinality as g (task_id, claim_token, failure, place)
    order by g.task_id, g.claim_token, g.place
  ) f
  join unnest(leases) l on l.task_id = f.task_id and l.claim_token = f.claim_token;

  if succeeded is not null then
    successes := rdq._succeed(succeeded, moment);
  end if;
  if cardinality(leases) < cardinality(task_ids) then
    perform rdq._note_late(array_agg(g.task_id), array_agg(g.claim_token), array_agg(
      case when nullif(g.failure, 'null') is null then 'SUCCEEDED' else 'FAILED' end
    ))
    from unnest(task_ids, claim_tokens, failures) with ordinality as g (task_id, claim_token, failure, place)
    left join unnest(places) t (place) on t.place = g.place
    where t.place is null;
  end if;

  return query
  select
    g.task_id, coalesce(e.status, rdq._status_for_worker(g.task_id)), e.next_attempt_at, e.dead_reason, e.status is null,
    e.error_class
  from unnest(task_ids) with ordinality as g (task_id, place)
  left join (
    unnest(places, held) h (place, task_id)
    join (
      select f.* from rdq._fail(failed, their_failures, moment) f
      union all
      select s.task_id, 'SUCCEEDED', null, null, null from unnest(successes) s (task_id)
    ) e on e.task_id = h.task_id
  ) on h.place = g.place
  order by g.place;
end
$$;

comment on function rdq._report_each(uuid[], uuid[], jsonb[], rdq.lease[], timestamptz) is
'The rest of report() for a batch with failures or stale claims, of which the leases were taken.';

create or replace function rdq.release(
  task_ids uuid[],
  claim_tokens uuid[],
  reason text default null,
  delay interval default '0'
) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  leases rdq.lease[];
begin
  perform rdq._check_claims(task_ids, claim_tokens);
  leases := rdq._take(task_ids, claim_tokens);
  perform rdq._conclude(
    array_agg(rdq._attempt(l, 'RELEASED', moment, rdq._clip(reason, 4096))),
    array_agg(l.give_up_at),
    array_agg(moment + rdq._capped_retry_after(coalesce(delay, '0'), '0'))
  )
  from unnest(leases) l
  having count(*) > 0;
  if cardinality(leases) < cardinality(task_ids) then
    perform rdq._note_late(array_agg(g.task_id), array_agg(g.claim_token), array_agg('RELEASED'::text))
    from unnest(task_ids, claim_tokens) as g (task_id, claim_token)
    left join unnest(leases) l on l.task_id = g.task_id and l.claim_token = g.claim_token
    where l.task_id is null;
  end if;
  return query select l.task_id from unnest(leases) l;
end
$$;

comment on function rdq.release(uuid[], uuid[], text, interval) is
'Hands claims back without a verdict: on shutdown, or because this process has no such handler. The attempt is recorded as RELEASED and given back, at most max_releases times in a life; the task is due after delay (at most a day). Returns the ids that were still held. Errors: RD002.';

create or replace function rdq.heartbeat(task_ids uuid[], claim_tokens uuid[], lease interval default null)
returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  patterns constant text[] := case when not rdq._is_owner() then rdq._queue_patterns('worker') end;
begin
  perform rdq._check_claims(task_ids, claim_tokens);
  perform rdq._check_lease(lease);
  -- A lease that is locked is being ended; waiting for that would hold up the others. Walks lease_pkey in the
  -- order of the ids, as _take() does.
  update rdq.lease l
  set expires_at = greatest(l.expires_at, moment + coalesce(
    heartbeat.lease, (select q.lease from rdq.queue q where q.queue = l.queue)
  ))
  where l.ctid = any (array(
    select l.ctid
    from rdq.lease l
    where l.task_id = any (task_ids)
      and ((l.task_id, l.claim_token) in (
        select g.task_id, g.claim_token from unnest(task_ids, claim_tokens) as g (task_id, claim_token)
      )) is true
      -- Whose right was withdrawn may still report, but holds nothing any longer.
      and rdq._permitted(l.queue, patterns)
    for no key update skip locked
  ));
  return query
  select distinct g.task_id
  from unnest(task_ids, claim_tokens) as g (task_id, claim_token)
  where (
    select l.task_id
    from rdq.lease l
    where l.task_id = g.task_id and l.claim_token = g.claim_token and rdq._permitted(l.queue, patterns)
  ) is not null;
end
$$;

comment on function rdq.heartbeat(uuid[], uuid[], interval) is
'Extends leases to now + lease (default: the queue''s), never shortens one, also after the end as long as nobody has taken it. Returns the ids still held, in queues in which the caller may (still) work: a worker stops working on the others. Never waits. Errors: RD002.';

create or replace function rdq._attempt(lease rdq.lease, outcome text, finished_at timestamptz, message text default null)
returns rdq.attempt
language sql immutable
return row(
  lease.task_id, null, lease.life, lease.queue, outcome, null, null, message, null, null, lease.runner, lease.code_version,
  lease.claimed_at, finished_at, null, null, null
)::rdq.attempt;

comment on function rdq._attempt(rdq.lease, text, timestamptz, text) is 'An attempt that did not fail, for _conclude() to number and record.';

create or replace function rdq._fail(leases rdq.lease[], failures jsonb[], finished_at timestamptz)
returns table (task_id uuid, status text, next_attempt_at timestamptz, dead_reason text, error_class text)
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  endings rdq.attempt[];
  give_up_ats timestamptz[];
  not_befores timestamptz[];
begin
  select
    array_agg(rdq._failed_attempt(
      l.task_id, l.queue, l.life, l.failure, finished_at, l.runner, l.code_version, l.claimed_at
    )),
    array_agg(l.give_up_at),
    array_agg(case when l.failure ? 'retry_after' then (
      select finished_at + rdq._asked_to_wait(l.failure, q.backoff_cap, q.jitter, l.give_up_at - finished_at)
      from rdq.queue q
      where q.queue = l.queue
      limit 1
    ) end)
  into endings, give_up_ats, not_befores
  from unnest(failures, leases) as l (failure)
  where l.task_id is not null;
  if endings is not null then
    return query select c.* from rdq._conclude(endings, give_up_ats, not_befores) c;
  end if;
end
$$;

comment on function rdq._fail(rdq.lease[], jsonb[], timestamptz) is
'Ends attempts that failed, whose leases the caller has taken; returns what becomes of the tasks.';

create or replace function rdq._failed_attempt(
  task_id uuid,
  queue text,
  life integer,
  failure jsonb,
  finished_at timestamptz,
  runner text default null,
  code_version text default null,
  started_at timestamptz default null
) returns rdq.attempt
language sql stable
return row(
  task_id, null, life, queue, 'FAILED', failure ->> 'class', rdq._clip(failure ->> 'type', 255),
  rdq._clip(failure ->> 'message', 4096), rdq._clip(failure ->> 'stack', 65536),
  rdq._clip_detail(nullif(failure -> 'detail', 'null')), runner, code_version, started_at,
  finished_at, null, null, null
)::rdq.attempt;

comment on function rdq._failed_attempt(uuid, text, integer, jsonb, timestamptz, text, text, timestamptz) is
'A failed attempt out of a reported or handed-over failure, cut to the limits, for _conclude() to number and record.';

create or replace function rdq._check_failure(argument text, failure jsonb) returns void
language plpgsql
as $$
begin
  if jsonb_typeof(failure) <> 'object' then
    perform rdq._refuse('RD002',
      format('%s is not an object: %s', argument, jsonb_typeof(failure)),
      'Give {"type": "...", "message": "...", "stack": "...", "class": "..."}, or null.');
  end if;
  perform rdq._check_class(argument || '.class', failure ->> 'class');
end
$$;

comment on function rdq._check_failure(text, jsonb) is 'Refuses (RD002) a failure of the wrong form. Its texts are never refused, only cut.';

create or replace function rdq._check_class(argument text, class text) returns void
language plpgsql immutable
as $$
begin
  if not rdq._is_class(class) then
    perform rdq._refuse('RD002',
      format('%s is unknown: %s', argument, left(class, 60)),
      'The classes are TRANSIENT, PERMANENT and AMBIGUOUS. A failure without one goes by the queue''s error_rules.');
  end if;
end
$$;

comment on function rdq._check_class(text, text) is 'Refuses (RD002) what is not the class of an error.';

create or replace function rdq._is_class(class text) returns boolean
language sql immutable
return class is null or class collate "C" in ('TRANSIENT', 'PERMANENT', 'AMBIGUOUS');

comment on function rdq._is_class(text) is 'Whether a failure may have this class; null is none.';

create or replace function rdq._check_claims(task_ids uuid[], claim_tokens uuid[]) returns void
language plpgsql immutable
as $$
begin
  if task_ids is null or claim_tokens is null or cardinality(task_ids) <> cardinality(claim_tokens) then
    perform rdq._refuse('RD002',
      format('task_ids has %s elements, claim_tokens %s',
        coalesce(cardinality(task_ids)::text, 'no'), coalesce(cardinality(claim_tokens)::text, 'no')),
      'Give for each task the token that rdq.claim returned with it.');
  end if;
  if array_position(task_ids, null) is not null or array_position(claim_tokens, null) is not null then
    perform rdq._refuse('RD002',
      format('element %s of task_ids or claim_tokens is null',
        least(array_position(task_ids, null), array_position(claim_tokens, null))),
      'Give for each task the token that rdq.claim returned with it.');
  end if;
end
$$;

comment on function rdq._check_claims(uuid[], uuid[]) is 'Refuses (RD002) ids and tokens that are not pairs.';

create or replace function rdq._check_lease(lease interval) returns void
language plpgsql immutable
as $$
begin
  if not rdq._is_lease(lease) then
    perform rdq._refuse('RD002',
      format('lease is %s', lease), 'Give 100 milliseconds to 30 days, or null for the queue''s setting.');
  end if;
end
$$;

comment on function rdq._check_lease(interval) is 'Refuses (RD002) a lease out of bounds.';

create or replace function rdq._is_lease(lease interval) returns boolean
language sql immutable
return lease is null or extract(epoch from lease) between 0.1 and 2592000;

comment on function rdq._is_lease(interval) is 'Whether a lease may be so long; null is the queue''s setting.';

create or replace function rdq._note_late(task_ids uuid[], claim_tokens uuid[], outcomes text[]) returns void
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  with late as materialized (
    select a.row, g.outcome
    -- Skips what is locked in one order, as whoever locks leases does.
    from (
      select g.* from unnest(task_ids, claim_tokens, outcomes) as g (task_id, claim_token, outcome) order by g.task_id
    ) g
    cross join lateral (
      select a.ctid as row
      from rdq.attempt a
      where a.task_id = g.task_id and a.claim_token = g.claim_token and a.late_at is null
      limit 1
      -- Locked: it is being purged.
      for update skip locked
    ) a
  )
  update rdq.attempt a
  set late_outcome = l.outcome, late_at = clock_timestamp()
  from late l
  where a.ctid = l.row;
end
$$;

comment on function rdq._note_late(uuid[], uuid[], text[]) is
'Notes on attempts that were ended in the holder''s absence what the holder reported afterwards: its effects probably happened twice. The first report stays.';
