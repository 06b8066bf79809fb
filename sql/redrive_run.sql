-- Bulk redrive: a row of its own that works in bounded batches, in the order of death, and never touches
-- what died after it began. tick() carries it on, so any runner does.

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
  reason text default null
) returns table (redrive_id uuid, state text, matched bigint, sent bigint, skipped bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run rdq.redrive_run;
begin
  run := rdq._new_redrive(
    rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until), spread, per_second, reason
  );
  if dry_run then
    return query select null::uuid, 'DRY_RUN', run.matched, 0::bigint, 0::bigint;
    return;
  end if;
  insert into rdq.redrive_run select run.*;
  perform rdq._audit('redrive_where', queue => queue, redrive_id => run.redrive_id, filter => run.filter,
    affected => run.matched, reason => reason);
  perform rdq._advance_redrive(run.redrive_id, 10000);
  return query
  select r.redrive_id, r.state, r.matched, r.sent, r.skipped
  from rdq.redrive_run r
  where r.redrive_id = run.redrive_id;
end
$$;

comment on function rdq.redrive_where(text, text, text, text, text, text, timestamptz, timestamptz, interval, double precision, boolean, text) is
'Puts back every dead letter that matches now, and none that dies later. Due times are spread evenly over spread, or per_second. dry_run only counts. The first 10,000 are sent at once, the rest by tick() in batches; rdq.redrive_status tells how far it is. A dead letter whose dedupe key a live task has is skipped and stays. The filter is that of dead_letters(); an empty one is refused. Errors: RD002.';

create or replace function rdq.redrive_status(redrive_id uuid)
returns table (
  state text,
  filter jsonb,
  matched bigint,
  sent bigint,
  skipped bigint,
  spread interval,
  reason text,
  actor text,
  began_at timestamptz,
  finished_at timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  run constant rdq.redrive_run := rdq._redrive_run(redrive_id, 'viewer');
begin
  return query
  select
    run.state, run.filter, run.matched, run.sent, run.skipped, run.spread, run.reason, run.actor,
    run.began_at, run.finished_at;
end
$$;

comment on function rdq.redrive_status(uuid) is
'A bulk redrive: state (RUNNING, PAUSED, DONE, CANCELLED), how many matched when it began, were sent, and were skipped because they were no longer dead or a live task had their key. Errors: RD003.';

create or replace function rdq.pause_redrive(redrive_id uuid, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select rdq._move_redrive(redrive_id, '{RUNNING}', 'PAUSED', 'pause_redrive', reason)
$$;

comment on function rdq.pause_redrive(uuid, text) is 'Stops a running redrive after its current batch; what it has sent goes on. Errors: RD003, RD004.';

create or replace function rdq.resume_redrive(redrive_id uuid, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select rdq._move_redrive(redrive_id, '{PAUSED}', 'RUNNING', 'resume_redrive', reason)
$$;

comment on function rdq.resume_redrive(uuid, text) is 'Lets a paused redrive go on where it stopped. Errors: RD003, RD004.';

create or replace function rdq.cancel_redrive(redrive_id uuid, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select rdq._move_redrive(redrive_id, '{RUNNING,PAUSED}', 'CANCELLED', 'cancel_redrive', reason)
$$;

comment on function rdq.cancel_redrive(uuid, text) is 'Ends a redrive for good; what it has sent goes on, the rest stays dead. Errors: RD003, RD004.';

create or replace function rdq._new_redrive(filter jsonb, spread interval, per_second double precision, reason text)
returns rdq.redrive_run
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  run rdq.redrive_run;
  moment constant timestamptz := clock_timestamp();
begin
  perform rdq._check_action_filter(filter);
  if spread is not null and per_second is not null then
    perform rdq._refuse('RD002', 'both spread and per_second are given', 'Give one of them.');
  end if;
  if extract(epoch from spread) not between 0 and 31557600 then
    perform rdq._refuse('RD002', format('spread is %s', spread), 'Give an interval from 0 to one year.');
  end if;
  if per_second not between 0.001 and 1000000 then
    perform rdq._refuse('RD002', format('per_second is %s', per_second), 'Give a rate from 0.001 to 1000000.');
  end if;
  run.redrive_id := rdq.uuid_v7();
  run.state := 'RUNNING';
  run.filter := filter;
  run.queues := rdq._queue_patterns('operator');
  run.reason := reason;
  run.actor := rdq._actor();
  run.began_at := moment;
  run.sent := 0;
  run.skipped := 0;
  run.cursor_at := '-infinity';
  run.cursor_id := '00000000-0000-0000-0000-000000000000';
  select count(*) into run.matched
  from rdq._dead_matching(run.filter, run.queues) d
  where d.dead_at <= moment;
  run.spread := case
    when per_second is not null then make_interval(secs => least(run.matched / per_second, 315576000))
    else coalesce(spread, '0')
  end;
  return run;
end
$$;

comment on function rdq._new_redrive(jsonb, interval, double precision, text) is 'A bulk redrive that has not begun, with the number of dead letters that match; refuses (RD002) a wrong pace.';

create or replace function rdq._advance_redrive(redrive_id uuid, max_tasks integer) returns integer
language plpgsql
set plan_cache_mode = force_custom_plan
as $$
declare
  run rdq.redrive_run;
  task_ids uuid[];
  run_ats timestamptz[];
  last_at timestamptz;
  last_id uuid;
  looked_at integer;
  batch_sent integer;
begin
  -- Locked: another runner is at it.
  select r.* into run
  from rdq.redrive_run r
  where r.redrive_id = _advance_redrive.redrive_id and r.state = 'RUNNING'
  for update skip locked;
  if not found then
    return 0;
  end if;
  select
    array_agg(d.task_id),
    array_agg(run.began_at + run.spread * ((run.sent + run.skipped + d.place)::double precision / greatest(run.matched, 1))),
    count(*), (array_agg(d.dead_at order by d.place desc))[1], (array_agg(d.task_id order by d.place desc))[1]
  into task_ids, run_ats, looked_at, last_at, last_id
  from (
    select m.task_id, m.dead_at, row_number() over (order by m.dead_at, m.task_id) - 1 as place
    from rdq._dead_matching(run.filter, run.queues) m
    where (m.dead_at, m.task_id) > (run.cursor_at, run.cursor_id) and m.dead_at <= run.began_at
    order by m.dead_at, m.task_id
    limit max_tasks
  ) d;
  select count(*) into batch_sent
  from rdq._redrive(task_ids, run_ats, died_until => run.began_at) r
  where r.due_at is not null;
  update rdq.redrive_run r
  set sent = r.sent + batch_sent,
    -- At the end also those that others redrove or purged before we came to them.
    skipped = case
      when looked_at < max_tasks then greatest(r.matched - r.sent, r.skipped + looked_at) - batch_sent
      else r.skipped + looked_at - batch_sent
    end,
    cursor_at = coalesce(last_at, r.cursor_at),
    cursor_id = coalesce(last_id, r.cursor_id),
    state = case when looked_at < max_tasks then 'DONE' else r.state end,
    finished_at = case when looked_at < max_tasks then clock_timestamp() end
  where r.redrive_id = run.redrive_id;
  return looked_at;
end
$$;

comment on function rdq._advance_redrive(uuid, integer) is 'One batch of a running bulk redrive; returns how many dead letters it looked at.';

create or replace function rdq._redrive_run(redrive_id uuid, capability text) returns rdq.redrive_run
language plpgsql
as $$
declare
  run rdq.redrive_run;
  patterns constant text[] := rdq._queue_patterns(capability);
begin
  select r.* into run from rdq.redrive_run r where r.redrive_id = _redrive_run.redrive_id;
  -- It is shown to whoever may act in its queue, or in every queue that its maker could.
  if not found or not (
    patterns is null or '%' = any (patterns) or run.queues <@ patterns or coalesce(rdq._permitted(run.filter ->> 'queue', patterns), false)
  ) then
    perform rdq._refuse('RD003',
      format('redrive %s does not exist', coalesce(redrive_id::text, 'null')),
      'rdq.redrive_where returns the id of a redrive when it begins one.');
  end if;
  return run;
end
$$;

comment on function rdq._redrive_run(uuid, text) is 'A bulk redrive that the caller may see; refuses (RD003) any other.';

create or replace function rdq._move_redrive(redrive_id uuid, from_states text[], to_state text, action text, reason text)
returns void
language plpgsql
as $$
declare
  run constant rdq.redrive_run := rdq._redrive_run(redrive_id, 'operator');
  current_state text;
begin
  select r.state into current_state
  from rdq.redrive_run r
  where r.redrive_id = run.redrive_id
  for update;
  if current_state <> all (from_states) then
    perform rdq._refuse('RD004',
      format('redrive %s is %s; nothing was changed', run.redrive_id, current_state),
      format('%s is for a redrive that is %s.', action, array_to_string(from_states, ' or ')));
  end if;
  update rdq.redrive_run r
  set state = to_state, finished_at = case when to_state = 'CANCELLED' then clock_timestamp() end
  where r.redrive_id = run.redrive_id;
  perform rdq._audit(action, redrive_id => run.redrive_id, queue => run.filter ->> 'queue', reason => reason);
end
$$;

comment on function rdq._move_redrive(uuid, text[], text, text, text) is 'Changes the state of a bulk redrive on an operator''s word; waits for a batch that is under way.';
