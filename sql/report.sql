-- Report: a worker says how its attempts ended. The claim token decides, not the clock (rule 2): a report
-- counts as long as nobody has taken the lease. A stale one changes nothing, raises nothing, and is
-- noted on the attempt that was recorded in its place.

create or replace function rdq.complete(task_id uuid, claim_token uuid) returns boolean
language sql
as $$
  select not r.stale from rdq.report(array[task_id], array[claim_token], array[null]::jsonb[]) r
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
as $$
begin
  perform rdq._check_class('error_class', error_class);
  -- Cut first: a jsonb string has a limit of its own, below that of text.
  return query
  select r.status, r.next_attempt_at, r.dead_reason, r.stale
  from rdq.report(array[task_id], array[claim_token], array[jsonb_strip_nulls(jsonb_build_object(
    'type', rdq._clip(error_type, 255),
    'message', rdq._clip(message, 4096),
    'stack', rdq._clip(stack, 65536),
    'class', error_class,
    'retry_after', extract(epoch from retry_after)
  )) || case when detail is null then '{}' else jsonb_build_object('detail', detail) end]) r;
end
$$;

comment on function rdq.fail(uuid, uuid, text, text, text, jsonb, text, interval) is
'Reports that the attempt failed, and returns what becomes of the task. error_class (TRANSIENT, PERMANENT, AMBIGUOUS) wins over the queue''s rules; retry_after is a lower bound of the delay, capped at a day. Message, stack and detail are cut at 4, 64 and 16 KiB. Errors: RD002.';

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
-- What it joins itself are arrays, of any length: by hashing, whatever length the planner expects.
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  places bigint[];
  endings rdq.attempt[];
  give_up_ats timestamptz[];
  not_befores timestamptz[];
begin
  perform rdq._check_claims(task_ids, claim_tokens);
  if cardinality(failures) is distinct from cardinality(task_ids) then
    perform rdq._refuse('RD002',
      format('failures has %s elements, task_ids %s', coalesce(cardinality(failures), 0), cardinality(task_ids)),
      'Give one failure for each task, null for a success.');
  end if;
  perform rdq._check_failure(format('failures[%s]', f.place), f.failure)
  from unnest(failures) with ordinality as f (failure, place)
  where f.failure <> 'null';

  select
    array_agg(t.place),
    array_agg(case
      when f.failure is null then rdq._attempt(t.lease, 'SUCCEEDED', moment)
      else rdq._failed_attempt(
        (t.lease).task_id, (t.lease).queue, (t.lease).life, f.failure, moment,
        (t.lease).runner, (t.lease).code_version, (t.lease).claimed_at
      )
    end),
    array_agg((t.lease).give_up_at),
    array_agg(case when f.failure ? 'retry_after' then moment + rdq._capped_retry_after(
      rdq._parse_retry_after(f.failure -> 'retry_after'),
      (select q.backoff_cap from rdq.queue q where q.queue = (t.lease).queue)
    ) end)
  into places, endings, give_up_ats, not_befores
  from rdq._take(task_ids, claim_tokens) t
  join (
    -- A null that came as JSON is one too.
    select nullif(f.failure, 'null') as failure, f.place
    from unnest(failures) with ordinality as f (failure, place)
  ) f on f.place = t.place;

  perform rdq._note_late(array_agg(g.task_id), array_agg(g.claim_token), array_agg(
    case when nullif(g.failure, 'null') is null then 'SUCCEEDED' else 'FAILED' end
  ))
  from unnest(task_ids, claim_tokens, failures) with ordinality as g (task_id, claim_token, failure, place)
  left join unnest(places) t (place) on t.place = g.place
  where t.place is null
  having count(*) > 0;

  return query
  select
    g.task_id, coalesce(c.status, rdq._status(g.task_id)), c.next_attempt_at, c.dead_reason, c.status is null,
    c.error_class
  from unnest(task_ids) with ordinality as g (task_id, place)
  left join (
    rdq._conclude(endings, give_up_ats, not_befores) c
    join unnest(endings) with ordinality e on e.task_id = c.task_id
  ) on g.place = places[e.ordinality]
  order by g.place;
end
$$;

comment on function rdq.report(uuid[], uuid[], jsonb[]) is
'Many completes and fails in one round trip, answered in order. A null failure is a success, else {"type", "message", "stack", "detail", "class", "retry_after"} (retry_after in seconds, or an interval). stale: the claim was lost, nothing changed, status is what the task is now. error_class: what a failure counts as, by its own class or the queue''s rules. Errors: RD002.';

create or replace function rdq.release(
  task_ids uuid[],
  claim_tokens uuid[],
  reason text default null,
  delay interval default '0'
) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  places bigint[];
  endings rdq.attempt[];
  give_up_ats timestamptz[];
  not_befores timestamptz[];
begin
  perform rdq._check_claims(task_ids, claim_tokens);
  select
    array_agg(t.place),
    array_agg(rdq._attempt(t.lease, 'RELEASED', moment, rdq._clip(reason, 4096))),
    array_agg((t.lease).give_up_at),
    array_agg(moment + rdq._capped_retry_after(coalesce(delay, '0'), '0'))
  into places, endings, give_up_ats, not_befores
  from rdq._take(task_ids, claim_tokens) t;
  if endings is not null then
    perform rdq._conclude(endings, give_up_ats, not_befores);
  end if;
  perform rdq._note_late(array_agg(g.task_id), array_agg(g.claim_token), array_agg('RELEASED'::text))
  from unnest(task_ids, claim_tokens) with ordinality as g (task_id, claim_token, place)
  left join unnest(places) t (place) on t.place = g.place
  where t.place is null
  having count(*) > 0;
  return query select e.task_id from unnest(endings) e;
end
$$;

comment on function rdq.release(uuid[], uuid[], text, interval) is
'Hands claims back without a verdict: on shutdown, or because this process has no such handler. The attempt is recorded as RELEASED and given back, at most max_releases times in a life; the task is due after delay (at most a day). Returns the ids that were still held. Errors: RD002.';

create or replace function rdq.heartbeat(task_ids uuid[], claim_tokens uuid[], lease interval default null)
returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
begin
  perform rdq._check_claims(task_ids, claim_tokens);
  perform rdq._check_lease(lease);
  -- A lease that is locked is being ended; waiting for that would hold up the others.
  update rdq.lease l
  set expires_at = greatest(l.expires_at, moment + coalesce(
    heartbeat.lease, (select q.lease from rdq.queue q where q.queue = l.queue)
  ))
  where l.ctid = any (array(
    select h.ticket
    from unnest(task_ids, claim_tokens) as g (task_id, claim_token)
    cross join lateral (
      select l.ctid as ticket
      from rdq.lease l
      where l.task_id = g.task_id and l.claim_token = g.claim_token
      limit 1
      for no key update skip locked
    ) h
  ));
  return query
  select distinct g.task_id
  from unnest(task_ids, claim_tokens) as g (task_id, claim_token)
  where (
    select l.task_id from rdq.lease l where l.task_id = g.task_id and l.claim_token = g.claim_token
  ) is not null;
end
$$;

comment on function rdq.heartbeat(uuid[], uuid[], interval) is
'Extends leases to now + lease (default: the queue''s), never shortens one, also after the end as long as nobody has taken it. Returns the ids still held: a worker stops working on the others. Never waits. Errors: RD002.';

create or replace function rdq._attempt(lease rdq.lease, outcome text, finished_at timestamptz, message text default null)
returns rdq.attempt
language sql immutable
return row(
  lease.task_id, null, lease.life, lease.queue, outcome, null, null, message, null, null, lease.runner, lease.code_version,
  lease.claimed_at, finished_at, null, null, null
)::rdq.attempt;

comment on function rdq._attempt(rdq.lease, text, timestamptz, text) is 'An attempt that did not fail, for _conclude() to number and record.';

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
      'Give {"type": …, "message": …, "stack": …, "class": …}, or null.');
  end if;
  perform rdq._check_class(argument || '.class', failure ->> 'class');
end
$$;

comment on function rdq._check_failure(text, jsonb) is 'Refuses (RD002) a failure of the wrong form. Its texts are never refused, only cut.';

create or replace function rdq._check_class(argument text, class text) returns void
language plpgsql immutable
as $$
begin
  if class not in ('TRANSIENT', 'PERMANENT', 'AMBIGUOUS') then
    perform rdq._refuse('RD002',
      format('%s is unknown: %s', argument, left(class, 60)),
      'The classes are TRANSIENT, PERMANENT and AMBIGUOUS. A failure without one goes by the queue''s error_rules.');
  end if;
end
$$;

comment on function rdq._check_class(text, text) is 'Refuses (RD002) what is not the class of an error.';

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
  if extract(epoch from lease) not between 0.1 and 2592000 then
    perform rdq._refuse('RD002',
      format('lease is %s', lease), 'Give 100 milliseconds to 30 days, or null for the queue''s setting.');
  end if;
end
$$;

comment on function rdq._check_lease(interval) is 'Refuses (RD002) a lease out of bounds.';

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
    from unnest(task_ids, claim_tokens, outcomes) as g (task_id, claim_token, outcome)
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
