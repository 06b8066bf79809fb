-- Redrive: dead letters go back to work with a fresh budget; identity, settings and history stay. The
-- dead ticket is the guard: whoever deletes it redrives, a second redrive of the same task finds
-- nothing. A bulk redrive is a row of its own that works in bounded batches, in the order of death, and
-- never touches what died after it began. tick() carries it on, so any runner does.

create or replace function rdq.redrive(
  task_id uuid,
  payload text default null,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select r.* from rdq._redrive_one(task_id, convert_to(payload, 'UTF8'), run_at, give_up_at, reason) r;
end
$$;

comment on function rdq.redrive(uuid, text, timestamptz, timestamptz, text) is
'Puts one dead letter back, optionally with an edited payload (its content type stays; the audit keeps both), from run_at, with the deadline give_up_at (default: the task''s original span from then on). Errors: RD002, RD003, RD004 where it is not dead, RD006, RD008 where a live task has its dedupe key.';

create or replace function rdq.redrive(
  task_id uuid,
  payload bytea,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select r.* from rdq._redrive_one(task_id, payload, run_at, give_up_at, reason) r;
end
$$;

comment on function rdq.redrive(uuid, bytea, timestamptz, timestamptz, text) is 'redrive() with a payload of bytes.';

create or replace function rdq.redrive(
  task_id uuid,
  payload json,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select r.* from rdq._redrive_one(task_id, convert_to(payload::text, 'UTF8'), run_at, give_up_at, reason) r;
end
$$;

comment on function rdq.redrive(uuid, json, timestamptz, timestamptz, text) is 'redrive() with a JSON payload, kept byte for byte.';

create or replace function rdq.redrive(
  task_id uuid,
  payload jsonb,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select r.* from rdq._redrive_one(task_id, convert_to(payload::text, 'UTF8'), run_at, give_up_at, reason) r;
end
$$;

comment on function rdq.redrive(uuid, jsonb, timestamptz, timestamptz, text) is 'redrive() with a JSON payload.';

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

create or replace function rdq._redrive_one(
  task_id uuid,
  payload bytea,
  run_at timestamptz,
  give_up_at timestamptz,
  reason text
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql
as $$
declare
  task constant rdq.task := rdq._task(task_id);
  settings rdq.queue;
  answer record;
begin
  perform rdq._require('operator', task.queue);
  settings := rdq._queue(task.queue);
  if octet_length(payload) > settings.max_payload_bytes then
    perform rdq._refuse('RD006',
      format('the payload has %s bytes; queue "%s" takes at most %s', octet_length(payload), task.queue, settings.max_payload_bytes),
      'Shorten it, or raise max_payload_bytes with rdq.alter_queue.');
  end if;
  if not rdq._is_usable_time(run_at) or not rdq._is_usable_time(give_up_at)
    or greatest(run_at, clock_timestamp()) > give_up_at
  then
    perform rdq._refuse('RD002',
      format('run_at (%s) or give_up_at (%s) is out of bounds', coalesce(run_at::text, 'now'), coalesce(give_up_at::text, 'null')),
      'Give times before the year 10000, and a deadline that is not before the first attempt.');
  end if;
  select r.* into answer from rdq._redrive(array[task.id], array[run_at], give_up_at) r;
  if not found then
    perform rdq._task(task.id);
    perform rdq._refuse('RD004',
      format('task %s is %s, not DEAD; nothing was changed', task.id, rdq._status(task.id)),
      'Only a dead letter can be redriven; a task that is PENDING or IN_FLIGHT is still being worked on.');
  elsif answer.due_at is null then
    perform rdq._refuse('RD008',
      format('task %s stays dead: a live task in queue "%s" has its dedupe key', task.id, task.queue),
      'Let that task end, or purge this one if that task does its work.');
  end if;
  if payload is not null then
    update rdq.task t set payload = _redrive_one.payload where t.id = task.id;
  end if;
  perform rdq._audit('redrive', queue => task.queue, task_id => task.id, reason => reason,
    before => case when payload is not null then rdq._audited_payload(task.payload) end,
    after => case when payload is not null then rdq._audited_payload(payload) end);
  return query select 'PENDING', answer.due_at, answer.life;
end
$$;

comment on function rdq._redrive_one(uuid, bytea, timestamptz, timestamptz, text) is 'redrive() of one task, with the payload as bytes.';

create or replace function rdq._audited_payload(payload bytea) returns jsonb
language sql immutable
return jsonb_build_object('payload', translate(encode(payload, 'base64'), E'\n', ''));

comment on function rdq._audited_payload(bytea) is 'A payload as the audit keeps it, in base64.';

create or replace function rdq._redrive(
  task_ids uuid[],
  run_ats timestamptz[],
  give_up_at timestamptz default null,
  died_until timestamptz default null
) returns table (task_id uuid, due_at timestamptz, life integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
  moment constant timestamptz := clock_timestamp();
  tickets tid[];
  locked uuid[];
  starts timestamptz[];
  blocked uuid[];
  due_again rdq.due[];
begin
  -- In the order of ids, like every bulk pass over dead letters.
  select array_agg(d.ticket), array_agg(g.task_id), array_agg(greatest(g.run_at, moment))
  into tickets, locked, starts
  from (
    select g.task_id, g.run_at from unnest(task_ids, run_ats) as g (task_id, run_at) order by g.task_id
  ) g
  cross join lateral (
    select d.ctid as ticket
    from rdq.dead d
    -- Another may have redriven it since it was chosen, and it died again.
    where d.task_id = g.task_id and (died_until is null or d.dead_at <= died_until)
    limit 1
    for update
  ) d;
  blocked := rdq._blocked_by_key(locked);
  with moved as (
    delete from rdq.dead d
    using unnest(tickets, locked, starts) as h (ticket, task_id, start_at)
    where d.ctid = h.ticket and h.task_id <> all (blocked)
    returning d.task_id, d.queue, d.life, h.start_at
  )
  select array_agg(row(
    m.task_id, m.queue, m.start_at, m.life + 1, coalesce(_redrive.give_up_at, m.start_at + t.span)
  )::rdq.due)
  into due_again
  from moved m
  cross join lateral (
    select t.give_up_at - t.created_at as span from rdq.task t where t.id = m.task_id limit 1
  ) t;
  if due_again is not null then
    perform rdq._schedule(due_again);
  end if;
  return query
    select d.task_id, d.due_at, d.life from unnest(due_again) d
    union all
    select b.task_id, null, null from unnest(blocked) b (task_id);
end
$$;

comment on function rdq._redrive(uuid[], timestamptz[], timestamptz, timestamptz) is
'Moves those of the tasks that are dead to rdq.due, a life on; the one place that does. A null due_at: it stays dead because a live task has its dedupe key. A task that is not dead is not returned.';

create or replace function rdq._blocked_by_key(task_ids uuid[]) returns uuid[]
language plpgsql
-- A submit of the same key that has not committed may wait for locks of ours: give way long before the
-- deadlock check would choose one of us.
set lock_timeout = '200ms'
as $$
declare
  keyed record;
  blocked uuid[] := '{}';
begin
  for keyed in
    select t.id, t.queue, sha256(convert_to(t.dedupe_key, 'UTF8')) as key_hash
    from rdq.task t
    where t.id = any (task_ids) and t.dedupe_key is not null
  loop
    begin
      if rdq._hold_key(keyed.queue, keyed.key_hash, keyed.id) is not null then
        blocked := blocked || keyed.id;
      end if;
    exception when lock_not_available or deadlock_detected then
      blocked := blocked || keyed.id;
      -- Once is enough: the producer of one key is probably the producer of the next.
      perform set_config('lock_timeout', '1ms', true);
    end;
  end loop;
  return blocked;
end
$$;

comment on function rdq._blocked_by_key(uuid[]) is
'Takes the dedupe keys of tasks, and returns those tasks whose key another one has or is about to have.';

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
