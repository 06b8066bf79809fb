-- Redrive: dead letters go back to work with a fresh budget; identity, settings and history stay. The
-- dead ticket is the guard: whoever deletes it redrives, a second redrive of the same task finds
-- nothing. Many at once are redriven by rdq.redrive_where.

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
