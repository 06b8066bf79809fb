-- Redrive: dead letters go back to work with a fresh budget; identity, settings and history stay. The
-- dead ticket is the guard: whoever deletes it redrives, a second redrive of the same task finds
-- nothing. Many at once are redriven by rdq.redrive_where.

create or replace function rdq.redrive(
  task_id uuid,
  payload text default null,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null,
  content_type text default null,
  headers jsonb default null,
  to_queue text default null,
  to_handler text default null,
  to_handler_version text default null,
  expected_redrive_count integer default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
begin
  return query
  select r.*
  from rdq._redrive_one(
    task_id, convert_to(payload, 'UTF8'), run_at, give_up_at, reason, content_type, headers, to_queue, to_handler, to_handler_version,
    expected_redrive_count
  ) r;
end
$$;

comment on function rdq.redrive(uuid, text, timestamptz, timestamptz, text, text, jsonb, text, text, text, integer) is
'Puts one dead letter back, from run_at, with the deadline give_up_at (default: the task''s original span from then on). payload, content_type and headers may be edited: what is given replaces what was, the rest stays, also the content type of another payload; the audit keeps what changed, before and after. to_queue, to_handler and to_handler_version send it elsewhere, for good. expected_redrive_count is the redrive_count that the caller has seen: a task that was redriven since, and has died again, is refused. One that was submitted after its own deadline has no span: it needs a give_up_at. Errors: RD001, RD002, RD003, RD004 where it is not dead, or was redriven since, RD006, RD007, RD008 where a live task has its dedupe key, RD010.';

create or replace function rdq.redrive(
  task_id uuid,
  payload bytea,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null,
  content_type text default null,
  headers jsonb default null,
  to_queue text default null,
  to_handler text default null,
  to_handler_version text default null,
  expected_redrive_count integer default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
begin
  return query
  select r.*
  from rdq._redrive_one(
    task_id, payload, run_at, give_up_at, reason, content_type, headers, to_queue, to_handler, to_handler_version,
    expected_redrive_count
  ) r;
end
$$;

comment on function rdq.redrive(uuid, bytea, timestamptz, timestamptz, text, text, jsonb, text, text, text, integer) is 'redrive() with a payload of bytes.';

create or replace function rdq.redrive(
  task_id uuid,
  payload json,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null,
  content_type text default null,
  headers jsonb default null,
  to_queue text default null,
  to_handler text default null,
  to_handler_version text default null,
  expected_redrive_count integer default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
begin
  return query
  select r.*
  from rdq._redrive_one(
    task_id, convert_to(payload::text, 'UTF8'), run_at, give_up_at, reason, content_type, headers, to_queue, to_handler, to_handler_version,
    expected_redrive_count
  ) r;
end
$$;

comment on function rdq.redrive(uuid, json, timestamptz, timestamptz, text, text, jsonb, text, text, text, integer) is 'redrive() with a JSON payload, kept byte for byte.';

create or replace function rdq.redrive(
  task_id uuid,
  payload jsonb,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  reason text default null,
  content_type text default null,
  headers jsonb default null,
  to_queue text default null,
  to_handler text default null,
  to_handler_version text default null,
  expected_redrive_count integer default null
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
begin
  return query
  select r.*
  from rdq._redrive_one(
    task_id, convert_to(payload::text, 'UTF8'), run_at, give_up_at, reason, content_type, headers, to_queue, to_handler, to_handler_version,
    expected_redrive_count
  ) r;
end
$$;

comment on function rdq.redrive(uuid, jsonb, timestamptz, timestamptz, text, text, jsonb, text, text, text, integer) is 'redrive() with a JSON payload.';

create or replace function rdq._redrive_one(
  task_id uuid,
  payload bytea,
  run_at timestamptz,
  give_up_at timestamptz,
  reason text,
  content_type text,
  headers jsonb,
  to_queue text,
  to_handler text,
  to_handler_version text,
  expected_redrive_count integer
) returns table (status text, next_attempt_at timestamptz, redrive_count integer)
language plpgsql
as $$
declare
  task rdq.task := rdq._task(task_id, 'operator');
  answer record;
  change record;
begin
  perform rdq._check_edit(task, payload, content_type, headers, run_at, give_up_at);
  perform rdq._check_target(to_queue, to_handler, to_handler_version);
  -- _redrive() passes over what is locked; one that was named is waited for.
  perform
  from rdq.dead d
  where d.task_id = task.id and (expected_redrive_count is null or d.life = expected_redrive_count)
  for update;
  if not found then
    perform rdq._refuse_to_redrive(task.id);
  end if;
  task := rdq._task(task.id);
  select r.* into answer
  from rdq._redrive(
    array[task.id], array[run_at], give_up_at,
    to_queue => to_queue, to_handler => to_handler, to_handler_version => to_handler_version
  ) r;
  if answer.skipped = 'key_held' then
    perform rdq._refuse('RD008',
      format('task %s stays dead: a live task in queue "%s" has its dedupe key', task.id, coalesce(to_queue, task.queue)),
      'Let that task end, or purge this one if that task does its work.');
  elsif answer.skipped = 'no_span' then
    perform rdq._refuse('RD002',
      format('task %s was submitted after its deadline (%s), so it has no span to be given anew', task.id, task.give_up_at),
      'Give the new deadline as give_up_at.');
  end if;
  change := rdq._edit(task, payload, content_type, headers);
  perform rdq._audit('redrive', queue => task.queue, task_id => task.id, reason => reason,
    before => change.before, after => change.after);
  return query select 'PENDING', answer.due_at, answer.life;
exception when lock_not_available then
  perform rdq._refuse_busy(format('task %s', _redrive_one.task_id));
end
$$;

comment on function rdq._redrive_one(uuid, bytea, timestamptz, timestamptz, text, text, jsonb, text, text, text, integer) is 'redrive() of one task, with the payload as bytes.';

create or replace function rdq._check_target(to_queue text, to_handler text, to_handler_version text) returns void
language plpgsql
as $$
begin
  if to_queue is not null then
    perform rdq._require('operator', to_queue), rdq._queue(to_queue);
  end if;
  if to_handler is not null then
    perform rdq._check_name('to_handler', to_handler);
  end if;
  if length(to_handler_version) not between 1 and 240 then
    perform rdq._refuse('RD002',
      format('to_handler_version has %s characters', length(to_handler_version)), 'Give 1 to 240 characters, or null for the one it has.');
  end if;
end
$$;

comment on function rdq._check_target(text, text, text) is
'Refuses (RD001, RD002, RD007) where a redrive cannot send to.';

create or replace function rdq._check_edit(
  task rdq.task,
  payload bytea,
  content_type text,
  headers jsonb,
  run_at timestamptz,
  give_up_at timestamptz
) returns void
language plpgsql
as $$
begin
  if greatest(run_at, clock_timestamp()) > give_up_at then
    perform rdq._refuse('RD002',
      format('give_up_at (%s) is before the first attempt', give_up_at),
      'Give a deadline that is later than run_at and now, or null for the task''s original span.');
  end if;
  -- What stays was taken at submit, whatever the queue takes now.
  task.payload := coalesce(payload, '');
  task.content_type := coalesce(content_type, task.content_type);
  task.headers := coalesce(headers, '{}');
  task.give_up_at := give_up_at;
  perform rdq._check_task(task, run_at, null, (rdq._queue(task.queue)).max_payload_bytes);
end
$$;

comment on function rdq._check_edit(rdq.task, bytea, text, jsonb, timestamptz, timestamptz) is
'Refuses (RD002, RD006) what a submit would refuse in a redrive: an edit or a time.';

create or replace function rdq._refuse_to_redrive(task_id uuid) returns void
language plpgsql
as $$
declare
  status constant text := rdq._status(task_id);
begin
  perform rdq._task(task_id);
  if status = 'DEAD' then
    perform rdq._refuse('RD004',
      format('task %s was redriven by somebody else, and is DEAD again; nothing was changed', task_id),
      'Look at its new failure with rdq.history, then redrive it again.');
  end if;
  perform rdq._refuse('RD004',
    format('task %s is %s, not DEAD; nothing was changed', task_id, status),
    'Only a dead letter can be redriven; a task that is PENDING or IN_FLIGHT is still being worked on.');
end
$$;

comment on function rdq._refuse_to_redrive(uuid) is 'Raises why a task that was not dead when its turn came is not redriven: RD003, RD004.';

create or replace function rdq._edit(was rdq.task, payload bytea, content_type text, headers jsonb, out before jsonb, out after jsonb)
language plpgsql
as $$
declare
  -- Where it was sent elsewhere, that has been done.
  edited rdq.task := rdq._task(was.id);
begin
  if num_nonnulls(payload, content_type, headers) > 0 then
    edited.payload := coalesce(payload, was.payload);
    edited.content_type := coalesce(content_type, was.content_type);
    edited.headers := coalesce(headers, was.headers);
    update rdq.task t
    set payload = edited.payload,
      content_type = rdq._stored_type(edited.content_type),
      headers = nullif(edited.headers, '{}')
    where t.id = was.id;
  end if;
  select jsonb_object_agg(b.key, b.value), jsonb_object_agg(a.key, a.value)
  into before, after
  from jsonb_each(rdq._editable(was)) b
  join jsonb_each(rdq._editable(edited)) a on a.key = b.key and a.value <> b.value;
end
$$;

comment on function rdq._edit(rdq.task, bytea, text, jsonb) is
'Replaces what is given of a task whose ticket the caller has taken, and returns what has changed since it was so; with _redrive(), which sends tasks elsewhere, the one place that changes a task.';

create or replace function rdq._editable(task rdq.task) returns jsonb
language sql immutable
return jsonb_build_object(
  'payload', translate(encode(task.payload, 'base64'), E'\n', ''),
  'content_type', task.content_type,
  'headers', task.headers,
  'queue', task.queue,
  'handler', task.handler,
  'handler_version', task.handler_version
);

comment on function rdq._editable(rdq.task) is 'What an edit may change, as the audit keeps it: the payload in base64.';

create or replace function rdq._redrive(
  task_ids uuid[],
  run_ats timestamptz[],
  give_up_at timestamptz default null,
  died_until timestamptz default null,
  redrive_id uuid default null,
  to_queue text default null,
  to_handler text default null,
  to_handler_version text default null
) returns table (task_id uuid, due_at timestamptz, life integer, skipped text)
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
declare
  moment constant timestamptz := clock_timestamp();
  tickets tid[];
  locked uuid[];
  starts timestamptz[];
  spans interval[];
  keyed uuid[];
  spent uuid[];
  blocked uuid[] := '{}';
  due_again rdq.due[];
begin
  if to_queue is not null then
    perform rdq._hold_queue(to_queue), rdq._queue(to_queue);
  end if;
  -- In the order of ids, like every bulk pass over dead letters; one that another transaction has locked, which an
  -- operator may have left open, is passed over. What is read of a task stays as it is while its ticket is there.
  -- Measured, of a bulk redrive: to read the tasks twice more, for the keys and after the delete, 1.08 times the time;
  -- to delete by key, without a lock before, 0.98 and 35 bytes of WAL less, but then keys would have to be taken before
  -- it is known who has the ticket.
  select
    array_agg(d.ticket), array_agg(g.task_id), array_agg(greatest(g.run_at, moment)), array_agg(t.span),
    array_agg(g.task_id) filter (where t.has_key), array_agg(g.task_id) filter (where t.span <= interval '0')
  into tickets, locked, starts, spans, keyed, spent
  from (
    select g.task_id, g.run_at from unnest(task_ids, run_ats) as g (task_id, run_at) order by g.task_id
  ) g
  cross join lateral (
    select d.ctid as ticket
    from rdq.dead d
    -- Another may have redriven it since it was chosen, and it died again.
    where d.task_id = g.task_id and (died_until is null or d.dead_at <= died_until)
    limit 1
    for update skip locked
  ) d
  cross join lateral (
    select t.give_up_at - coalesce(t.run_at, t.created_at) as span, t.dedupe_key is not null as has_key
    from rdq.task t
    where t.id = g.task_id
    limit 1
  ) t;
  if spent is null or give_up_at is not null then
    spent := '{}';
  end if;
  if keyed is not null then
    blocked := rdq._blocked_by_key(array(select unnest(keyed) except select unnest(spent)), to_queue);
  end if;
  with moved as (
    delete from rdq.dead d
    using unnest(tickets, locked, starts, spans) as h (ticket, task_id, start_at, span)
    where d.ctid = h.ticket and h.task_id <> all (blocked) and h.task_id <> all (spent)
    returning d.task_id, d.queue, d.life, h.start_at, h.span
  )
  select array_agg(row(
    m.task_id, coalesce(to_queue, m.queue), m.start_at, m.life + 1, coalesce(_redrive.give_up_at, m.start_at + m.span), true
  )::rdq.due)
  into due_again
  from moved m;
  if num_nonnulls(to_queue, to_handler, to_handler_version) > 0 then
    update rdq.task t
    set queue = coalesce(to_queue, t.queue),
      handler = coalesce(to_handler, t.handler),
      handler_version = coalesce(to_handler_version, t.handler_version)
    where t.id = any (array(select d.task_id from unnest(due_again) d));
  end if;
  if due_again is not null then
    perform rdq._schedule(due_again);
  end if;
  if redrive_id is not null then
    insert into rdq.redriven (task_id, life, redrive_id)
    select d.task_id, d.life, _redrive.redrive_id from unnest(due_again) d;
  end if;
  return query
    select d.task_id, d.due_at, d.life, null::text from unnest(due_again) d
    union all
    select b.task_id, null, null, 'key_held' from unnest(blocked) b (task_id)
    union all
    select s.task_id, null, null, 'no_span' from unnest(spent) s (task_id)
    union all
    select o.task_id, null, null, 'locked'
    from (
      select unnest(task_ids) as task_id except select unnest(locked)
    ) o
    where (
      select d.task_id from rdq.dead d where d.task_id = o.task_id and (died_until is null or d.dead_at <= died_until)
    ) is not null;
end
$$;

comment on function rdq._redrive(uuid[], timestamptz[], timestamptz, timestamptz, uuid, text, text, text) is
'Moves those of the tasks that are dead to rdq.due, a life on, and elsewhere if that is asked for; the one place that does. What stays dead is skipped: key_held, a live task has its dedupe key; no_span, its deadline was over when it was submitted, and no other is given; locked, by another transaction. A task that is not dead is not returned.';

create or replace function rdq._blocked_by_key(task_ids uuid[], to_queue text default null) returns uuid[]
language plpgsql
-- In the order of the hashes, as a submit of many takes them, so the two do not wait for each other. A
-- producer that submits one by one in a transaction may: give way long before the deadlock check would
-- choose one of us.
set lock_timeout = '200ms'
as $$
declare
  step constant integer := 500;
  keys rdq.dedupe[];
  batch rdq.dedupe[];
  keyed rdq.dedupe;
  taken uuid[];
  blocked uuid[] := '{}';
begin
  keys := array(
    select row(k.queue, k.key_hash, k.id)::rdq.dedupe
    from (
      select coalesce(to_queue, t.queue) as queue, sha256(convert_to(t.dedupe_key, 'UTF8')) as key_hash, t.id
      from unnest(task_ids) g (task_id)
      cross join lateral (select t.id, t.queue, t.dedupe_key from rdq.task t where t.id = g.task_id limit 1) t
    ) k
    order by k.key_hash
  );
  for place in 1 .. cardinality(keys) by step loop
    batch := keys[place : place + step - 1];
    -- All at once: a transaction number for each key would burden replicas and vacuum.
    begin
      with given as (
        insert into rdq.dedupe (queue, key_hash, task_id)
        select k.queue, k.key_hash, k.task_id from unnest(batch) with ordinality k order by k.ordinality
        on conflict do nothing
        returning dedupe.task_id
      )
      select array_agg(g.task_id) into taken from given g;
    exception when lock_not_available or deadlock_detected then
      taken := null;
    end;
    -- One by one those that another task has, or all where one had to be waited for.
    foreach keyed in array batch loop
      continue when keyed.task_id = any (taken);
      begin
        if rdq._hold_key(keyed.queue, keyed.key_hash, keyed.task_id) is not null then
          blocked := blocked || keyed.task_id;
        end if;
      exception when lock_not_available or deadlock_detected then
        blocked := blocked || keyed.task_id;
        -- Once is enough: the producer of one key is probably the producer of the next.
        perform set_config('lock_timeout', '1ms', true);
      end;
    end loop;
  end loop;
  return blocked;
end
$$;

comment on function rdq._blocked_by_key(uuid[], text) is
'Takes the dedupe keys of tasks, in the queue to which they go, and returns those tasks whose key another one has or is about to have.';
