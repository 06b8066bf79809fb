-- Bulk redrive: dead letters go back without repeating the wreck. It is a row of its own, carried on by
-- tick() in bounded batches, in the order of death; what died after it began it never touches.
--
--   RUNNING ──► DONE: all that matched is sent        HALTED: what it sent died again; an operator decides
--      ▲ │      PAUSED, CANCELLED: an operator's word, at any moment
--
-- With a canary a few are sent first, some of each cause, and the rest only when all of those have
-- succeeded. With a pace nothing is sent more than ten seconds ahead of its time, so that whoever stops a
-- redrive stops it; before a dead letter in a paused queue it waits. What another transaction has locked is passed
-- over, and sent when that has ended: no step of a redrive waits, so whoever pauses or cancels it never waits for long.
-- rdq.redriven has a row for each task that it sent until the end of that life is counted; so what was sent is always
-- what succeeded, what died again, what was cancelled and what is still undecided.

create or replace function rdq.redrive_where(
  queue text default null,
  handler text default null,
  error_type text default null,
  error_class text default null,
  dead_reason text default null,
  fingerprint text default null,
  since timestamptz default null,
  until timestamptz default null,
  spread interval default null,
  per_second double precision default null,
  dry_run boolean default false,
  reason text default null,
  canary integer default null,
  halt_at double precision default 0.5,
  halt_min integer default 20,
  to_queue text default null,
  to_handler text default null,
  to_handler_version text default null
) returns table (
  redrive_id uuid,
  state text,
  matched bigint,
  sent bigint,
  skipped bigint,
  groups jsonb,
  warnings text[]
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run rdq.redrive_run;
  matched_in record;
begin
  perform rdq._check_pace(spread, per_second, canary, halt_at, halt_min);
  perform rdq._check_target(to_queue, to_handler, to_handler_version);
  run := rdq._new_redrive(
    rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until), reason
  );
  run.per_second := case
    when per_second is not null then per_second
    when spread > interval '0' and run.matched > 0 then run.matched / extract(epoch from spread)
  end;
  run.canary := coalesce(canary, 0);
  run.phase := case when run.canary > 0 and run.matched > 0 then 'CANARY' else 'REST' end;
  run.halt_at := halt_at;
  run.halt_min := halt_min;
  run.to_queue := to_queue;
  run.to_handler := to_handler;
  run.to_handler_version := to_handler_version;
  if dry_run then
    return query
    select
      null::uuid, 'DRY_RUN', run.matched, 0::bigint, 0::bigint,
      rdq._redrive_groups(run.filter, run.queues), rdq._redrive_warnings(run.filter, run.queues);
    return;
  end if;
  insert into rdq.redrive_run select run.*;
  -- A row for each queue, so that whoever looks at one sees what was done to it.
  for matched_in in
    select m.queue, m.matched
    from rdq._matched_by_queue(run) m
    union all
    select queue, 0 where run.matched = 0
    order by 1
  loop
    perform rdq._audit('redrive_where', queue => matched_in.queue, redrive_id => run.redrive_id, filter => run.filter,
      affected => matched_in.matched, reason => reason, after => jsonb_strip_nulls(jsonb_build_object(
        'to_queue', to_queue, 'to_handler', to_handler, 'to_handler_version', to_handler_version
      )));
  end loop;
  run := rdq._advance_redrive(run, 10000);
  return query
  select
    run.redrive_id, run.state, run.matched, run.sent, run.key_held + run.no_span + run.no_longer_dead, null::jsonb, null::text[];
end
$$;

comment on function rdq.redrive_where(text, text, text, text, text, text, timestamptz, timestamptz, interval, double precision, boolean, text, integer, double precision, integer, text, text, text) is
'Puts back every dead letter that matches now, and none that dies later. The filter is that of dead_letters(); an empty one is refused. dry_run changes nothing and says how many match, in which groups, and what would probably die again. spread or per_second set a pace. canary sends so many first, of each cause some, and the rest only when they have succeeded. It halts (NOTIFY rdq_redrive) when a canary dies, or when the share halt_at of at least halt_min tasks that ended has died again; a null halt_at never. Before a dead letter in a paused queue it waits. At most 10,000 are sent at once, the rest by tick(); rdq.redrive_status tells how far it is. to_queue, to_handler and to_handler_version send them elsewhere, for good. A dead letter whose dedupe key a live task has is skipped and stays, and so does one that was submitted after its own deadline. One that another transaction has locked is sent when that has ended. Errors: RD001, RD002, RD007.';

create or replace function rdq._may_see_redrive(queues text[], filter jsonb, patterns text[]) returns boolean
language sql immutable
-- Whoever may act in its queue, or in every queue that its maker could.
return patterns is null or '%' = any (patterns) or coalesce(queues <@ patterns, false)
  or coalesce((filter ->> 'queue') like any (patterns), false);

comment on function rdq._may_see_redrive(text[], jsonb, text[]) is
'Whether a bulk redrive is shown to somebody with these queues; for the views.';

create or replace view rdq.redrives with (security_barrier) as
select
  r.redrive_id, r.state, r.state_reason, r.filter, r.matched, r.sent,
  r.succeeded + u.succeeded as succeeded,
  r.died + u.died as died,
  r.sent - r.succeeded - r.died - r.cancelled - u.succeeded - u.died - u.cancelled as undecided,
  r.key_held + r.no_span + r.no_longer_dead as skipped,
  jsonb_build_object('key_held', r.key_held, 'no_span', r.no_span, 'no_longer_dead', r.no_longer_dead) as skipped_why,
  r.per_second, r.canary, r.phase = 'CANARY' as canary_out, r.halt_at, r.halt_min, r.reason, r.actor, r.began_at,
  r.finished_at,
  r.cancelled + u.cancelled as cancelled,
  (select count(*) from rdq.redrive_passed p where p.redrive_id = r.redrive_id) as locked,
  r.to_queue, r.to_handler, r.to_handler_version
from rdq.redrive_run r
cross join lateral (
  select
    count(*) filter (where o.outcome = 'SUCCEEDED') as succeeded,
    count(*) filter (where o.outcome = 'DEAD') as died,
    count(*) filter (where o.outcome = 'CANCELLED') as cancelled
  from rdq.redriven o
  where r.settled_at is null and o.redrive_id = r.redrive_id and o.outcome is not null
) u
where rdq._may_see_redrive(r.queues, r.filter, (select rdq._queue_patterns('viewer')))
order by r.began_at desc;

comment on view rdq.redrives is
'The bulk redrives of the queues that the caller may see, newest first: state and why, how many matched when it began, were sent, have succeeded, died again, were cancelled or are undecided, and were skipped: key_held, a live task has their dedupe key; no_span, they were submitted after their own deadline; no_longer_dead, somebody else redrove or purged them. canary_out: only the canary is sent. locked: they will be sent when another transaction, which has locked them, has ended.';

create or replace function rdq.redrive_status(redrive_id uuid) returns setof rdq.redrives
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._redrive_run(redrive_id, 'viewer');
  return query select r.* from rdq.redrives r where r.redrive_id = redrive_status.redrive_id;
end
$$;

comment on function rdq.redrive_status(uuid) is 'A bulk redrive, as in rdq.redrives. Errors: RD003.';

create or replace function rdq.pause_redrive(redrive_id uuid, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select rdq._move_redrive(redrive_id, '{RUNNING}', 'PAUSED', 'pause_redrive', reason collate "C")
$$;

comment on function rdq.pause_redrive(uuid, text) is 'Stops a running redrive after its current batch, for which it waits for five seconds at most; what it has sent goes on. Errors: RD003, RD004, RD010.';

create or replace function rdq.resume_redrive(redrive_id uuid, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select rdq._move_redrive(redrive_id, '{PAUSED,HALTED}', 'RUNNING', 'resume_redrive', reason collate "C")
$$;

comment on function rdq.resume_redrive(uuid, text) is
'Lets a paused or halted redrive go on where it stopped. One that had halted goes on without waiting for its canary, and what has ended so far is not held against it again. Errors: RD003, RD004, RD010.';

create or replace function rdq.cancel_redrive(redrive_id uuid, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select rdq._move_redrive(redrive_id, '{RUNNING,PAUSED,HALTED}', 'CANCELLED', 'cancel_redrive', reason collate "C")
$$;

comment on function rdq.cancel_redrive(uuid, text) is 'Ends a redrive for good; what it has sent goes on, the rest stays dead. Errors: RD003, RD004, RD010.';

create or replace function rdq._check_pace(
  spread interval,
  per_second double precision,
  canary integer,
  halt_at double precision,
  halt_min integer
) returns void
language plpgsql immutable
as $$
begin
  if spread is not null and per_second is not null then
    perform rdq._refuse('RD002', 'both spread and per_second are given', 'Give one of them.');
  end if;
  if extract(epoch from spread) not between 0 and 31557600 then
    perform rdq._refuse('RD002', format('spread is %s', spread), 'Give an interval from 0 to one year.');
  end if;
  if per_second not between 0.001 and 1000000 then
    perform rdq._refuse('RD002', format('per_second is %s', per_second), 'Give a rate from 0.001 to 1000000.');
  end if;
  if canary not between 0 and 1000 then
    perform rdq._refuse('RD002', format('canary is %s', canary), 'Give 1 to 1000 tasks, or null for none.');
  end if;
  if halt_at is not null and not (halt_at > 0 and halt_at <= 1) then
    perform rdq._refuse('RD002',
      format('halt_at is %s', halt_at), 'Give a share above 0, at most 1, such as 0.1; null never halts.');
  end if;
  if halt_min is null or halt_min < 1 then
    perform rdq._refuse('RD002', format('halt_min is %s', coalesce(halt_min::text, 'null')), 'Give at least 1.');
  end if;
end
$$;

comment on function rdq._check_pace(interval, double precision, integer, double precision, integer) is
'Refuses (RD002) how a bulk redrive cannot go.';

create or replace function rdq._new_redrive(filter jsonb, reason text) returns rdq.redrive_run
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  run rdq.redrive_run;
begin
  perform rdq._check_action_filter(filter);
  run.redrive_id := rdq.uuid_v7();
  run.state := 'RUNNING';
  run.filter := filter;
  run.queues := rdq._queue_patterns('operator');
  run.reason := rdq._clip(reason, 4096);
  run.actor := rdq._actor();
  run.began_at := moment;
  run.next_due_at := moment;
  run.cursor_at := '-infinity';
  run.cursor_id := '00000000-0000-0000-0000-000000000000';
  run.sent := 0;
  run.succeeded := 0;
  run.died := 0;
  run.cancelled := 0;
  run.key_held := 0;
  run.no_span := 0;
  run.no_longer_dead := 0;
  run.succeeded_before := 0;
  run.died_before := 0;
  run.matched := (select coalesce(sum(m.matched), 0) from rdq._matched_by_queue(run) m);
  return run;
end
$$;

comment on function rdq._new_redrive(jsonb, text) is 'A bulk redrive that has not begun, with the number of dead letters that match.';

create or replace function rdq._matched_by_queue(run rdq.redrive_run) returns table (queue text, matched bigint)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select d.queue, count(*)
  from rdq._dead_matching(run.filter, run.queues) d
  where d.dead_at <= run.began_at
  group by d.queue;
end
$$;

comment on function rdq._matched_by_queue(rdq.redrive_run) is 'How many dead letters of each queue a bulk redrive is about.';

create or replace function rdq._redrive_groups(filter jsonb, patterns text[]) returns jsonb
language sql stable
as $$
  select coalesce(jsonb_agg(to_jsonb(g) order by g.count desc, g.fingerprint), '[]')
  from (
    select g.fingerprint, g.handler, g.error_type, g.count, g.sample_message
    from rdq._dead_letter_groups(filter, patterns, 100) g
  ) g
$$;

comment on function rdq._redrive_groups(jsonb, text[]) is 'The hundred largest groups of what a redrive would send.';

create or replace function rdq._redrive_warnings(filter jsonb, patterns text[]) returns text[]
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_nestloop = on
set jit = off
as $$
begin
  return array(
    select w.warning
    from (
      select
        count(*) filter (where d.error_class = 'PERMANENT') as permanent,
        count(*) filter (where d.error_class = 'AMBIGUOUS') as ambiguous,
        count(*) filter (where d.error_class <> 'TRANSIENT' and d.code_version = v.code_version) as same_version,
        string_agg(distinct v.code_version, ', ') filter (where d.error_class <> 'TRANSIENT' and d.code_version = v.code_version)
          as versions,
        count(*) filter (where t.give_up_at < clock_timestamp() and not t.no_span) as too_late,
        count(*) filter (where t.no_span) as no_span,
        count(*) filter (where k.task_id <> d.task_id) as key_held
      from rdq._dead_matching(filter, patterns) d
      cross join lateral (
        select t.give_up_at, t.dedupe_key, coalesce(t.give_up_at <= coalesce(t.run_at, t.created_at), false) as no_span
        from rdq.task t
        where t.id = d.task_id
        limit 1
      ) t
      left join lateral (
        select k.task_id
        from rdq.dedupe k
        where k.queue = d.queue and k.key_hash = sha256(convert_to(t.dedupe_key, 'UTF8'))
        limit 1
      ) k on true
      left join (
        select q.queue, rdq._newest_code_version(q.queue) as code_version from rdq.queue q
      ) v on v.queue = d.queue
    ) c
    cross join lateral (
      values
        (c.permanent, format(
          '%s failed as PERMANENT: they will die again unless the code, what it calls or the payload has changed',
          c.permanent)),
        (c.ambiguous, format(
          '%s failed as AMBIGUOUS: their effects may have happened already; redriving them may repeat those', c.ambiguous)),
        (c.same_version, format(
          '%s died under code version %s, which is still the newest that was seen', c.same_version, c.versions)),
        (c.key_held, format(
          '%s have a dedupe key that a live task has now: they will be skipped', c.key_held)),
        (c.too_late, format(
          '%s had a deadline that has passed: they get its span anew, if a result so late is of use', c.too_late)),
        (c.no_span, format(
          '%s were submitted after their own deadline: they will be skipped; rdq.redrive takes each with a give_up_at', c.no_span))
    ) w (count, warning)
    where w.count > 0
  );
end
$$;

comment on function rdq._redrive_warnings(jsonb, text[]) is 'What would repeat the wreck, or surprise, if what matches were redriven now; a sentence each.';

create or replace function rdq._newest_code_version(queue text) returns text
language sql stable
set enable_seqscan = off
-- By runners first: they say what is deployed now. Else by what ended last in the queue.
return (
  select s.code_version
  from (
    (select r.code_version, 1 as rank
    from rdq.runner r
    where r.code_version is not null and (r.queues is null or _newest_code_version.queue = any (r.queues))
    order by r.started_at desc
    limit 1)
    union all
    (select s.code_version, 2
    from (
      (select a.code_version, a.finished_at as seen_at
      from rdq.attempt a
      where a.queue = _newest_code_version.queue and a.outcome = 'SUCCEEDED'
      order by a.finished_at desc
      limit 1)
      union all
      (select d.code_version, d.dead_at
      from rdq.dead d
      where d.queue = _newest_code_version.queue
      order by d.dead_at desc
      limit 1)
    ) s
    order by s.seen_at desc
    limit 1)
  ) s
  order by s.rank
  limit 1
);

comment on function rdq._newest_code_version(text) is 'The code version that works in a queue now, as far as anybody has said.';

create or replace function rdq._advance_redrive(run rdq.redrive_run, max_tasks integer) returns rdq.redrive_run
language plpgsql
as $$
begin
  run := rdq._count_redriven(run);
  if run.state = 'RUNNING' then
    run := rdq._judge_redrive(run);
  end if;
  if run.state = 'RUNNING' and run.phase = 'CANARY' and run.sent = 0 then
    run := rdq._send_canary(run);
  elsif run.state = 'RUNNING' and run.phase = 'REST' then
    run := rdq._send_next(run, max_tasks);
  end if;
  run := rdq._settled(run);
  update rdq.redrive_run r
  set (
    state, state_reason, phase, finished_at, settled_at, sent, succeeded, died, cancelled, key_held, no_span,
    no_longer_dead, next_due_at, cursor_at, cursor_id
  ) = (
    run.state, run.state_reason, run.phase, run.finished_at, run.settled_at, run.sent, run.succeeded, run.died,
    run.cancelled, run.key_held, run.no_span, run.no_longer_dead, run.next_due_at, run.cursor_at, run.cursor_id
  )
  where r.redrive_id = run.redrive_id;
  return run;
end
$$;

comment on function rdq._advance_redrive(rdq.redrive_run, integer) is
'One step of a bulk redrive whose row the caller has locked: counts what has ended, judges, sends a batch.';

create or replace function rdq._settled(run rdq.redrive_run) returns rdq.redrive_run
language plpgsql
as $$
begin
  if run.state in ('DONE', 'CANCELLED') and run.sent = run.succeeded + run.died + run.cancelled then
    run.settled_at := clock_timestamp();
  end if;
  return run;
end
$$;

comment on function rdq._settled(rdq.redrive_run) is 'Notes that nothing is left to do for a redrive, if that is so.';

create or replace function rdq._count_redriven(run rdq.redrive_run) returns rdq.redrive_run
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
  successes bigint;
  deaths bigint;
  cancels bigint;
begin
  -- Walks redriven_uncounted; whoever wrote an outcome has committed, and nobody writes it again.
  with counted as (
    delete from rdq.redriven o
    where o.ctid = any (array(
      select u.ctid from rdq.redriven u where u.redrive_id = run.redrive_id and u.outcome is not null limit 10000
    ))
    returning o.outcome
  )
  select
    count(*) filter (where c.outcome = 'SUCCEEDED'), count(*) filter (where c.outcome = 'DEAD'),
    count(*) filter (where c.outcome = 'CANCELLED')
  into successes, deaths, cancels
  from counted c;
  run.succeeded := run.succeeded + successes;
  run.died := run.died + deaths;
  run.cancelled := run.cancelled + cancels;
  return run;
end
$$;

comment on function rdq._count_redriven(rdq.redrive_run) is 'Moves outcomes from rdq.redriven into the counts of their redrive.';

create or replace function rdq._judge_redrive(run rdq.redrive_run) returns rdq.redrive_run
language plpgsql
as $$
declare
  died constant bigint := run.died - run.died_before;
  ended constant bigint := died + run.succeeded - run.succeeded_before;
begin
  if run.to_queue is not null and not exists (select from rdq.queue q where q.queue = run.to_queue) then
    return rdq._halted(run, format('queue "%s", to which it sends, does not exist any more', run.to_queue));
  end if;
  if run.phase = 'CANARY' and run.died > 0 then
    return rdq._halted(run, format('%s of a canary of %s died again', run.died, run.sent));
  end if;
  -- What an operator cancelled says nothing of the rest.
  if run.phase = 'CANARY' and run.sent > 0 and run.sent = run.succeeded + run.cancelled then
    if run.succeeded = 0 then
      return rdq._halted(run, format('all of a canary of %s were cancelled', run.sent));
    end if;
    run.phase := 'REST';
  end if;
  if ended >= run.halt_min and died >= run.halt_at * ended then
    return rdq._halted(run, format('%s of %s that have ended died again', died, ended));
  end if;
  return run;
end
$$;

comment on function rdq._judge_redrive(rdq.redrive_run) is 'Decides by what has ended whether a running redrive goes on, and whether its canary has come back.';

create or replace function rdq._halted(run rdq.redrive_run, why text) returns rdq.redrive_run
language plpgsql
as $$
begin
  run.state := 'HALTED';
  run.state_reason := why;
  perform rdq._audit('halt_redrive', queue => run.filter ->> 'queue', redrive_id => run.redrive_id,
    affected => run.matched - run.sent - run.key_held - run.no_span - run.no_longer_dead, reason => why,
    after => rdq._redrive_counts(run));
  perform rdq._announce_redrive(run);
  return run;
end
$$;

comment on function rdq._halted(rdq.redrive_run, text) is 'A redrive that is halted, audited with how many it leaves untouched, and announced.';

create or replace function rdq._announce_redrive(run rdq.redrive_run) returns void
language sql
as $$
  select pg_notify('rdq_redrive', jsonb_build_object(
    'redrive_id', run.redrive_id, 'state', run.state
  )::text)
$$;

comment on function rdq._announce_redrive(rdq.redrive_run) is
'NOTIFY rdq_redrive: redrive_id and state as JSON. Any role that may connect can listen, so it does not say why.';

create or replace function rdq._redrive_counts(run rdq.redrive_run) returns jsonb
language sql immutable
return jsonb_build_object(
  'state', run.state, 'matched', run.matched, 'sent', run.sent, 'succeeded', run.succeeded, 'died', run.died,
  'cancelled', run.cancelled, 'key_held', run.key_held, 'no_span', run.no_span, 'no_longer_dead', run.no_longer_dead
);

comment on function rdq._redrive_counts(rdq.redrive_run) is 'The counts of a redrive as the audit keeps them.';

create or replace function rdq._send_canary(run rdq.redrive_run) returns rdq.redrive_run
language plpgsql
as $$
declare
  canaries constant uuid[] := rdq._canaries(run);
begin
  if canaries is null and (select n.waits from rdq._next_dead(run, 1) n) then
    return run;
  elsif canaries is null then
    -- Somebody else redrove or purged them all.
    run.phase := 'REST';
    return rdq._send_next(run, 1);
  end if;
  run := rdq._send(run, canaries);
  -- Those that are locked are tried again at the next step.
  if run.sent = 0 and not exists (select from rdq.redrive_passed p where p.redrive_id = run.redrive_id) then
    return rdq._halted(run, 'no canary could be sent: a live task has the dedupe key of each, or they have no span');
  end if;
  return run;
end
$$;

comment on function rdq._send_canary(rdq.redrive_run) is 'Sends a canary.';

create or replace function rdq._canaries(run rdq.redrive_run) returns uuid[]
language sql stable
set plan_cache_mode = force_custom_plan
set enable_nestloop = on
set jit = off
as $$
  -- The newest of each group, then the second newest, and so on: what died last is most like what comes.
  select array_agg(c.task_id)
  from (select array(select q.queue from rdq.queue q where q.paused_at is not null) as queues) paused
  cross join lateral (
    select m.task_id
    from (
      select d.fingerprint, count(*) as size
      from rdq._dead_matching(run.filter, run.queues) d
      where d.dead_at <= run.began_at and d.queue <> all (paused.queues)
      group by d.fingerprint
      order by count(*) desc, d.fingerprint
      limit run.canary
    ) g
    cross join lateral (
      select d.task_id, row_number() over (order by d.dead_at desc, d.task_id desc) as rank
      from rdq._dead_matching(run.filter, run.queues) d
      where d.fingerprint = g.fingerprint and d.dead_at <= run.began_at and d.queue <> all (paused.queues)
      order by d.dead_at desc, d.task_id desc
      limit run.canary
    ) m
    order by m.rank, g.size desc, g.fingerprint
    limit run.canary
  ) c
$$;

comment on function rdq._canaries(rdq.redrive_run) is 'The dead letters to send first: some of each group, of as many groups as there is room for.';

create or replace function rdq._next_dead(run rdq.redrive_run, batch integer)
returns table (task_ids uuid[], last_at timestamptz, last_id uuid, waits boolean)
language plpgsql stable
set plan_cache_mode = force_custom_plan
-- Walks the index that fits the filter, from the cursor: 1 ms for a thousand. Sorting all that is left took 170
-- with 90,000 left, so a redrive cost the square of its size.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  paused constant text[] := array(select q.queue from rdq.queue q where q.paused_at is not null);
begin
  return query
  select
    array_agg(d.task_id order by d.place) filter (where not d.waits),
    (array_agg(d.dead_at order by d.place desc) filter (where not d.waits))[1],
    (array_agg(d.task_id order by d.place desc) filter (where not d.waits))[1],
    coalesce(bool_or(d.waits), false)
  from (
    select
      m.task_id, m.dead_at, row_number() over in_order as place,
      bool_or(m.queue = any (paused)) over in_order as waits
    from rdq._dead_matching(run.filter, run.queues) m
    where (m.dead_at, m.task_id) > (run.cursor_at, run.cursor_id) and m.dead_at <= run.began_at
    window in_order as (order by m.dead_at, m.task_id)
    order by m.dead_at, m.task_id
    limit batch
  ) d;
end
$$;

comment on function rdq._next_dead(rdq.redrive_run, integer) is
'The dead letters that a redrive comes to next, in the order of death, and the last of them. It waits before one in a paused queue: what it sent there would all be due at once when that is resumed.';

create or replace function rdq._send_next(run rdq.redrive_run, max_tasks integer) returns rdq.redrive_run
language plpgsql
as $$
declare
  moment constant timestamptz := clock_timestamp();
  start_at constant timestamptz := greatest(run.next_due_at, moment);
  batch constant integer := case
    when run.per_second is null then max_tasks
    else least(max_tasks, greatest(0, floor(extract(epoch from moment + interval '10 seconds' - start_at) * run.per_second) + 1))
  end;
  task_ids uuid[];
  last_at timestamptz;
  last_id uuid;
  waits boolean;
  done boolean;
begin
  if batch = 0 then
    return run;
  end if;
  select n.* into task_ids, last_at, last_id, waits from rdq._next_dead(run, batch) n;
  run.cursor_at := coalesce(last_at, run.cursor_at);
  run.cursor_id := coalesce(last_id, run.cursor_id);
  done := coalesce(cardinality(task_ids), 0) < batch and not waits;
  if done and task_ids is null then
    -- Back to those that were locked. None of them is, when the last has been sent, or is dead no more.
    task_ids := array(
      select p.task_id
      from rdq.redrive_passed p
      left join rdq.dead d on d.task_id = p.task_id
      left join rdq.queue q on q.queue = d.queue
      where p.redrive_id = run.redrive_id and q.paused_at is null
      limit batch
    );
  end if;
  run := rdq._send(run, coalesce(task_ids, '{}'));
  if done and not exists (select from rdq.redrive_passed p where p.redrive_id = run.redrive_id) then
    run.state := 'DONE';
    run.state_reason := null;
    run.finished_at := clock_timestamp();
    -- Of those that matched, also what was redriven or purged by others before we came to it.
    run.no_longer_dead := greatest(run.matched - run.sent - run.key_held - run.no_span, run.no_longer_dead);
    perform rdq._announce_redrive(run);
  end if;
  return run;
end
$$;

comment on function rdq._send_next(rdq.redrive_run, integer) is
'Sends the next batch in the order of death, as far as the pace allows; done when none is left.';

create or replace function rdq._send(run rdq.redrive_run, task_ids uuid[]) returns rdq.redrive_run
language plpgsql
as $$
declare
  start_at constant timestamptz := greatest(run.next_due_at, clock_timestamp());
  step constant interval := make_interval(secs => coalesce(1 / run.per_second, 0));
  moved bigint;
  locked uuid[];
  held uuid[];
  spent uuid[];
begin
  select
    count(*) filter (where r.skipped is null),
    coalesce(array_agg(r.task_id) filter (where r.skipped = 'locked'), '{}'),
    coalesce(array_agg(r.task_id) filter (where r.skipped = 'key_held'), '{}'),
    coalesce(array_agg(r.task_id) filter (where r.skipped = 'no_span'), '{}')
  into moved, locked, held, spent
  from rdq._redrive(
    task_ids, array(select start_at + step * (t.place - 1) from unnest(task_ids) with ordinality t (id, place)),
    died_until => run.began_at, redrive_id => run.redrive_id,
    to_queue => run.to_queue, to_handler => run.to_handler, to_handler_version => run.to_handler_version
  ) r;
  run.sent := run.sent + moved;
  run.next_due_at := start_at + step * cardinality(task_ids);
  delete from rdq.redrive_passed p
  where p.redrive_id = run.redrive_id and p.task_id = any (task_ids) and p.task_id <> all (locked);
  insert into rdq.redrive_passed select run.redrive_id, l.task_id from unnest(locked) l (task_id) on conflict do nothing;
  if run.phase = 'CANARY' then
    -- What a canary skips comes again in its turn, and is counted then.
    return run;
  end if;
  run.key_held := run.key_held + cardinality(held);
  run.no_span := run.no_span + cardinality(spent);
  run.no_longer_dead := run.no_longer_dead
    + cardinality(task_ids) - moved - cardinality(held) - cardinality(spent) - cardinality(locked);
  if held <> '{}' then
    perform rdq._audit('skip_redrive', queue => run.filter ->> 'queue', redrive_id => run.redrive_id,
      affected => cardinality(held), reason => 'a live task has the dedupe key', after => jsonb_build_object('task_ids', held));
  end if;
  if spent <> '{}' then
    perform rdq._audit('skip_redrive', queue => run.filter ->> 'queue', redrive_id => run.redrive_id,
      affected => cardinality(spent), reason => 'it was submitted after its own deadline', after => jsonb_build_object('task_ids', spent));
  end if;
  return run;
end
$$;

comment on function rdq._send(rdq.redrive_run, uuid[]) is
'Puts dead letters back, one after the other at the pace of their redrive, and counts them.';

create or replace function rdq._redrive_run(redrive_id uuid, capability text) returns rdq.redrive_run
language plpgsql
as $$
declare
  run rdq.redrive_run;
begin
  select r.* into run from rdq.redrive_run r where r.redrive_id = _redrive_run.redrive_id;
  if not found or not rdq._may_see_redrive(run.queues, run.filter, rdq._queue_patterns(capability)) then
    perform rdq._refuse('RD003',
      format('redrive %s does not exist', coalesce(redrive_id::text, 'null')),
      'rdq.redrive_where returns the id of a redrive when it begins one; rdq.redrives shows them.');
  end if;
  return run;
end
$$;

comment on function rdq._redrive_run(uuid, text) is 'A bulk redrive that the caller may see; refuses (RD003) any other.';

create or replace function rdq._move_redrive(redrive_id uuid, from_states text[], to_state text, action text, reason text)
returns void
language plpgsql
set lock_timeout = '5s'
as $$
declare
  run rdq.redrive_run := rdq._redrive_run(redrive_id, 'operator');
  was rdq.redrive_run;
begin
  select r.* into run from rdq.redrive_run r where r.redrive_id = run.redrive_id for update;
  if run.state <> all (from_states) then
    perform rdq._refuse('RD004',
      format('redrive %s is %s; nothing was changed', run.redrive_id, run.state),
      format('%s is for a redrive that is %s.', action, array_to_string(from_states, ' or ')));
  end if;
  was := run;
  run := rdq._count_redriven(run);
  run.state := to_state;
  run.state_reason := rdq._clip(reason, 4096);
  if was.state = 'HALTED' and to_state = 'RUNNING' then
    run.phase := 'REST';
    run.succeeded_before := run.succeeded;
    run.died_before := run.died;
  end if;
  if to_state = 'CANCELLED' then
    run.finished_at := clock_timestamp();
    delete from rdq.redrive_passed p where p.redrive_id = run.redrive_id;
  end if;
  run := rdq._settled(run);
  update rdq.redrive_run r
  set (state, state_reason, phase, succeeded, died, cancelled, succeeded_before, died_before, finished_at, settled_at)
    = (run.state, run.state_reason, run.phase, run.succeeded, run.died, run.cancelled, run.succeeded_before,
      run.died_before, run.finished_at, run.settled_at)
  where r.redrive_id = run.redrive_id;
  perform rdq._audit(action, redrive_id => run.redrive_id, queue => run.filter ->> 'queue', reason => reason,
    before => rdq._redrive_counts(was), after => rdq._redrive_counts(run));
  perform rdq._announce_redrive(run);
exception when lock_not_available then
  perform rdq._refuse_busy(format('redrive %s', _move_redrive.redrive_id));
end
$$;

comment on function rdq._move_redrive(uuid, text[], text, text, text) is
'Changes the state of a bulk redrive on an operator''s word; waits for a batch that is under way, for five seconds at most.';
