-- Submit: a unit of work comes in, inside the caller's own transaction. What is accepted is there to stay
-- until it has succeeded or is a dead letter; what is wrong is refused at the door and changes nothing.
--
-- A task_id that is known is answered with itself, whatever became of the task, so a submit whose commit
-- is in doubt is simply sent again. A dedupe key joins the live task that has it; concurrent submits
-- with one key wait for each other on rdq.dedupe and all get an id.

create or replace function rdq.submit(
  queue text,
  handler text,
  payload bytea,
  headers jsonb default null,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  max_attempts integer default null,
  dedupe_key text default null,
  handler_version text default null,
  error jsonb default null,
  task_id uuid default null,
  content_type text default null
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  patterns text[] := case when not rdq._is_owner() then rdq._queue_patterns('producer') end;
  max_bytes integer;
  deadline timestamptz;
  announced boolean;
  given rdq.task;
begin
  -- Of the time of this call half goes into making plans and expressions ready, anew in each transaction. So it has
  -- few of them: a composite task costs 8 us of 70, a function more 2, "perform" 4 more than an expression.
  while rdq._hold_queue(queue) loop
    select
      coalesce(submit.give_up_at, rdq._default_deadline(greatest(run_at, moment), q.give_up_after)), q.max_payload_bytes,
      q.notify and coalesce(run_at <= moment + interval '1 minute', true) and not b.busy
    into deadline, max_bytes, announced
    from rdq.queue q
    cross join lateral rdq._is_busy(q.queue, moment, transaction_timestamp()) b (busy)
    where q.queue = submit.queue collate "C" and rdq._permitted(q.queue, patterns);
    exit when found;
    -- Refuses, unless it was created or permitted this instant.
    perform rdq._require('producer', queue), rdq._queue(queue);
    patterns := rdq._queue_patterns('producer');
  end loop;
  if rdq._is_plain(handler, payload, content_type, max_bytes, num_nonnulls(
    run_at, give_up_at, max_attempts, dedupe_key, handler_version, error, task_id
  )) is not true then
    given := row(
      coalesce(task_id, rdq.uuid_v7()), queue, handler, handler_version, payload,
      coalesce(content_type, 'application/octet-stream'), coalesce(headers, '{}'), max_attempts, deadline, dedupe_key, moment,
      rdq._later(run_at, moment)
    );
    error := rdq._clip_failure(error);
    perform rdq._check_task(given, run_at, error, max_bytes);
    if num_nonnulls(dedupe_key, error, task_id) > 0 then
      return (rdq._admit(array[given], array[run_at], array[error]))[1];
    end if;
  elsif headers is not null then
    perform rdq._check_headers(headers);
  end if;
  -- Nobody can know it yet. The ticket is as _schedule() would write it, and comes after the task, from which it is
  -- selected: by then the transaction has its number (see low_water.sql). As two statements 1.1 times the time,
  -- through _admit() 2.2 times, of the whole call.
  with known as (
    insert into rdq.task values (
      rdq.uuid_v7(), queue, handler, handler_version, payload,
      rdq._stored_type(coalesce(content_type, 'application/octet-stream')), nullif(headers, '{}'), max_attempts, deadline,
      dedupe_key, moment, rdq._later(run_at, moment)
    )
    returning task.id
  )
  insert into rdq.due (task_id, queue, due_at, life, give_up_at, has_history)
  select k.id, submit.queue, rdq._not_past(greatest(run_at, moment)), 0, deadline, false
  from known k
  returning due.task_id into task_id;
  if announced then
    perform pg_notify('rdq_due', queue);
  end if;
  return task_id;
end
$$;

comment on function rdq.submit(text, text, bytea, jsonb, timestamptz, timestamptz, integer, text, text, jsonb, uuid, text) is
'Submits one task and returns its id. run_at is the earliest start, one that is over means now; give_up_at the deadline (default: the queue''s give_up_after); error the failure that brought the work here: {"type", "message", "stack", "class", "at", "detail", "retry_after"}, which becomes attempt 1 and spends nothing. Delivery is at least once: handlers must be idempotent. Errors: RD001, RD002, RD005, RD006, RD007.';

create or replace function rdq.submit(
  queue text,
  handler text,
  payload text,
  headers jsonb default null,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  max_attempts integer default null,
  dedupe_key text default null,
  handler_version text default null,
  error jsonb default null,
  task_id uuid default null,
  content_type text default null
) returns uuid
language sql
return rdq.submit(
  queue, handler, convert_to(payload, 'UTF8'), headers, run_at, give_up_at, max_attempts, dedupe_key,
  handler_version, error, task_id, coalesce(content_type, 'text/plain; charset=utf-8')
);

comment on function rdq.submit(text, text, text, jsonb, timestamptz, timestamptz, integer, text, text, jsonb, uuid, text) is
'submit() with a text payload, kept byte for byte as UTF-8 (text/plain unless content_type says otherwise).';

create or replace function rdq.submit(
  queue text,
  handler text,
  payload json,
  headers jsonb default null,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  max_attempts integer default null,
  dedupe_key text default null,
  handler_version text default null,
  error jsonb default null,
  task_id uuid default null,
  content_type text default null
) returns uuid
language sql
return rdq.submit(
  queue, handler, convert_to(payload::text, 'UTF8'), headers, run_at, give_up_at, max_attempts, dedupe_key,
  handler_version, error, task_id, coalesce(content_type, 'application/json')
);

comment on function rdq.submit(text, text, json, jsonb, timestamptz, timestamptz, integer, text, text, jsonb, uuid, text) is
'submit() with a JSON payload, kept byte for byte as it was written (application/json).';

create or replace function rdq.submit(
  queue text,
  handler text,
  payload jsonb,
  headers jsonb default null,
  run_at timestamptz default null,
  give_up_at timestamptz default null,
  max_attempts integer default null,
  dedupe_key text default null,
  handler_version text default null,
  error jsonb default null,
  task_id uuid default null,
  content_type text default null
) returns uuid
language sql
return rdq.submit(
  queue, handler, convert_to(payload::text, 'UTF8'), headers, run_at, give_up_at, max_attempts, dedupe_key,
  handler_version, error, task_id, coalesce(content_type, 'application/json')
);

comment on function rdq.submit(text, text, jsonb, jsonb, timestamptz, timestamptz, integer, text, text, jsonb, uuid, text) is
'submit() with a JSON payload (application/json). jsonb has its own order of keys and keeps one of duplicates; use json or text where the exact bytes matter.';

create or replace function rdq.submit_many(queue text, tasks jsonb) returns setof uuid
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select * from rdq._submit_many(queue, tasks, null)
$$;

comment on function rdq.submit_many(text, jsonb) is
'Submits an array of tasks in one round trip and returns their ids in order. Each is an object with the parameters of submit() as keys; a payload string is text, any other payload JSON, payload_base64 bytes; run_at and give_up_at are times with their offset from UTC (ISO 8601). All or nothing: an error names the item. jsonb has its own way of writing a JSON payload: give tasks as json or text where its exact bytes matter. Errors: as submit().';

create or replace function rdq.submit_many(queue text, tasks json) returns setof uuid
language sql
as $$
  select * from rdq.submit_many(queue, tasks::text)
$$;

comment on function rdq.submit_many(text, json) is 'submit_many() with the tasks as json; a JSON payload is kept byte for byte.';

create or replace function rdq.submit_many(queue text, tasks text) returns setof uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  items jsonb;
  payloads text[];
begin
  begin
    items := tasks::jsonb;
  exception when data_exception then
    perform rdq._refuse_text(tasks);
    raise;
  end;
  -- As they were written: jsonb has an order of keys and a form of numbers of its own.
  if jsonb_typeof(items) = 'array' and jsonb_path_exists(items, '$[*].payload ? (@.type() != "string")') then
    payloads := array(
      select case when json_typeof(t.item) = 'object' then (t.item -> 'payload')::text end
      from json_array_elements(tasks::json) with ordinality as t (item, place)
      order by t.place
    );
  end if;
  return query select * from rdq._submit_many(queue, items, payloads);
end
$$;

comment on function rdq.submit_many(text, text) is
'submit_many() with the tasks as text; a JSON payload is kept byte for byte, and an error can name the item that jsonb refuses, such as one with a NUL character.';

create or replace function rdq._submit_many(queue text, tasks jsonb, payloads text[]) returns setof uuid
language plpgsql
as $$
declare
  settings rdq.queue;
  parsed record;
begin
  perform rdq._require('producer', queue), rdq._hold_queue(queue);
  settings := rdq._queue(queue);
  if tasks is null or jsonb_typeof(tasks) <> 'array' then
    perform rdq._refuse('RD002',
      format('tasks is not an array: %s', coalesce(jsonb_typeof(tasks), 'null')),
      'Give an array of objects such as {"handler": "charge", "payload": {"order": 42}}.');
  end if;
  begin
    select * into parsed from rdq._parse_tasks(tasks, payloads, settings);
  exception when others then
    perform rdq._refuse_item(tasks, settings);
    raise;
  end;
  if jsonb_path_exists(tasks, '$[*] ? (@.task_id != null || @.dedupe_key != null || @.error != null)') then
    return query select unnest(rdq._admit(parsed.tasks, parsed.run_ats, parsed.errors));
  else
    perform rdq._admit_new(parsed.tasks, parsed.run_ats, settings.notify);
    return query select t.id from unnest(parsed.tasks) t;
  end if;
end
$$;

comment on function rdq._submit_many(text, jsonb, text[]) is 'submit_many(), with the JSON payloads as they were written, where that is known.';

create or replace function rdq._parse_tasks(
  items jsonb,
  payloads text[],
  settings rdq.queue,
  out tasks rdq.task[],
  out run_ats timestamptz[],
  out errors jsonb[]
)
language plpgsql
as $$
declare
  moment constant timestamptz := clock_timestamp();
  fields constant text[] := '{handler,payload,payload_base64,content_type,headers,run_at,give_up_at,max_attempts,dedupe_key,handler_version,error,task_id}';
  unknown text;
begin
  if jsonb_path_exists(items, 'strict $[*] ? (@.type() != "object")') then
    perform rdq._refuse('RD002', 'the task is not an object', 'A task is an object such as {"handler": "charge", "payload": {}}.');
  end if;
  select k.key into unknown
  from jsonb_array_elements(items) i (item)
  cross join jsonb_object_keys(i.item) k (key)
  where k.key <> all (fields)
  limit 1;
  if found then
    perform rdq._refuse('RD002',
      format('key "%s" does not exist in a task', left(unknown, 60)),
      'The keys are: ' || array_to_string(fields, ', ') || '.');
  end if;
  if jsonb_path_exists(items, 'strict $[*] ? (@.payload != null && @.payload_base64 != null)') then
    perform rdq._refuse('RD002',
      'payload and payload_base64 are both given', 'Give payload for text or JSON, payload_base64 for bytes.');
  end if;
  select
    array_agg(checked.task order by checked.place),
    array_agg(checked.run_at order by checked.place),
    array_agg(checked.error order by checked.place)
  into tasks, run_ats, errors
  from (
    select
      i.place, n.run_at, n.error, n.task,
      case when rdq._is_plain(
          (n.task).handler, (n.task).payload, (n.task).content_type, settings.max_payload_bytes, num_nonnulls(
            nullif((n.task).headers, '{}'), n.run_at, (n.task).give_up_at, (n.task).max_attempts, (n.task).dedupe_key,
            (n.task).handler_version, n.error
          )
        ) is not true
        then rdq._check_task(n.task, n.run_at, n.error, settings.max_payload_bytes)
      end
    from rows from (
      jsonb_to_recordset(items) as (
        handler text, payload jsonb, payload_base64 text, content_type text, headers jsonb, run_at text,
        give_up_at text, max_attempts integer, dedupe_key text, handler_version text, error jsonb, task_id uuid
      ),
      unnest(payloads)
    ) with ordinality as i (
      handler, payload, payload_base64, content_type, headers, run_at, give_up_at, max_attempts, dedupe_key,
      handler_version, error, task_id, payload_text, place
    )
    cross join lateral (
      select rdq._zoned_time('run_at', i.run_at) as run_at, rdq._zoned_time('give_up_at', i.give_up_at) as give_up_at offset 0
    ) at
    cross join lateral (
      select at.run_at, rdq._clip_failure(nullif(i.error, 'null')) as error, row(
        coalesce(i.task_id, rdq.uuid_v7()), settings.queue, i.handler, i.handler_version,
        case
          when i.payload_base64 is not null then decode(i.payload_base64, 'base64')
          when jsonb_typeof(i.payload) = 'string' then convert_to(i.payload #>> '{}', 'UTF8')
          else convert_to(coalesce(i.payload_text, i.payload::text), 'UTF8')
        end,
        coalesce(i.content_type, case
          when i.payload_base64 is not null then 'application/octet-stream'
          when jsonb_typeof(i.payload) = 'string' then 'text/plain; charset=utf-8'
          else 'application/json'
        end),
        coalesce(nullif(i.headers, 'null'), '{}'), i.max_attempts,
        coalesce(at.give_up_at, rdq._default_deadline(greatest(at.run_at, moment), settings.give_up_after)), i.dedupe_key, moment,
        rdq._later(at.run_at, moment)
      )::rdq.task as task
      offset 0
    ) n
  ) checked;
end
$$;

comment on function rdq._parse_tasks(jsonb, text[], rdq.queue) is 'The tasks of submit_many(), each checked; payloads are those of JSON as they were written, where that is known. An error does not say which item: _refuse_item() finds it.';

create or replace function rdq._refuse_item(items jsonb, settings rdq.queue) returns void
language plpgsql
as $$
declare
  item record;
  complaint text;
  advice text;
begin
  for item in select i.value, i.place - 1 as index from jsonb_array_elements(items) with ordinality as i (value, place) loop
    begin
      perform rdq._parse_tasks(jsonb_build_array(item.value), null, settings);
    exception when others then
      get stacked diagnostics complaint = message_text, advice = pg_exception_hint;
      perform rdq._refuse(
        case when sqlstate like 'RD%' then sqlstate else 'RD002' end,
        format('tasks[%s]: %s', item.index, complaint),
        coalesce(nullif(advice, ''), 'Nothing was submitted. Correct the item, or leave it out, and call again.'));
    end;
  end loop;
end
$$;

comment on function rdq._refuse_item(jsonb, rdq.queue) is 'Raises the error of the first wrong item of submit_many(), and names it.';

create or replace function rdq._refuse_text(tasks text) returns void
language plpgsql
as $$
declare
  item record;
begin
  if left(ltrim(tasks), 1) = '[' then
    for item in select i.value, i.place - 1 as index from json_array_elements(tasks::json) with ordinality as i (value, place) loop
      begin
        perform item.value::jsonb;
      exception when data_exception then
        perform rdq._refuse('RD002',
          format('tasks[%s]: %s', item.index, sqlerrm),
          'Nothing was submitted. PostgreSQL cannot store NUL in text: send such a payload as payload_base64.');
      end;
    end loop;
  end if;
end
$$;

comment on function rdq._refuse_text(text) is 'Raises the error of the first item that is JSON but not jsonb, and names it.';

create or replace function rdq._is_usable_time(at timestamptz) returns boolean
language sql immutable strict parallel safe
return isfinite(at) and at < '10000-01-01 00:00:00+00';

comment on function rdq._is_usable_time(timestamptz) is 'Whether delays and spans can be added to a time without leaving the calendar; null for null.';

create or replace function rdq._default_deadline(start_at timestamptz, give_up_after interval) returns timestamptz
language sql stable parallel safe
return least(start_at, '10000-01-01 00:00:00+00') + give_up_after;

comment on function rdq._default_deadline(timestamptz, interval) is 'The deadline of a task whose caller gave none.';

create or replace function rdq._stored_type(content_type text) returns text
language sql immutable parallel safe
return case content_type collate "C"
  when 'text/plain; charset=utf-8' then null
  when 'application/json' then ''
  else content_type
end;

comment on function rdq._stored_type(text) is
'A content type as rdq.task keeps it: null for text, empty for JSON, which nobody can give. It saves 25 and 16 bytes of WAL a task.';

create or replace function rdq._content_type(stored text) returns text
language sql immutable parallel safe
return case when stored is null then 'text/plain; charset=utf-8' when stored collate "C" = '' then 'application/json' else stored end;

comment on function rdq._content_type(text) is 'What _stored_type() made short.';

create or replace function rdq._is_plain(
  handler text,
  payload bytea,
  content_type text,
  max_payload_bytes integer,
  others integer
) returns boolean
language sql immutable
return others = 0
  and rdq._is_name(handler)
  and octet_length(payload) <= max_payload_bytes
  and coalesce(content_type, 'application/octet-stream') collate "C" in (
    'text/plain; charset=utf-8', 'application/json', 'application/octet-stream'
  );

comment on function rdq._is_plain(text, bytea, text, integer, integer) is
'Whether a task is of the most usual kind, in which _check_task() would find nothing; null for no. others: how much else is said of it. Of a bulk submit that takes a fifth of the time.';

create or replace function rdq._check_task(task rdq.task, run_at timestamptz, error jsonb, max_payload_bytes integer)
returns void
language plpgsql
as $$
declare
  problem text[];
begin
  perform rdq._check_name('handler', task.handler);
  if octet_length(task.payload) > max_payload_bytes then
    perform rdq._refuse('RD006',
      format('the payload has %s bytes; queue "%s" takes at most %s', octet_length(task.payload), task.queue, max_payload_bytes),
      'Store the content elsewhere and submit a reference, or raise max_payload_bytes with rdq.alter_queue.');
  end if;
  problem := case
    when task.payload is null then
      array['payload is null', 'Give the bytes that the handler needs; an empty payload is ''''.']
    when task.max_attempts not between 1 and 10000 then
      array[format('max_attempts is %s', task.max_attempts), 'Give 1 to 10000, or null for the queue''s setting.']
    when octet_length(task.dedupe_key) not between 1 and 65536 then
      array[format('dedupe_key has %s bytes', octet_length(task.dedupe_key)), 'Give 1 to 65536 bytes, or null.']
    when length(task.handler_version) > 240 then
      array['handler_version is longer than 240 characters', 'Give a short version, such as a release or a commit.']
    when length(task.content_type) not between 1 and 240 or task.content_type !~ '^[!-~ ]+$' then
      array['content_type is not valid', 'Give a media type of at most 240 characters, such as application/json.']
    when not rdq._is_usable_time(run_at) or not rdq._is_usable_time(task.give_up_at) then
      array['run_at or give_up_at is out of bounds', 'Give a time before the year 10000, or null.']
    when run_at > task.give_up_at then
      array[format('run_at (%s) is later than give_up_at (%s)', run_at, task.give_up_at),
        'A task that may only start after its deadline can never run: correct one of them.']
  end;
  if problem is not null then
    perform rdq._refuse('RD002', problem[1], problem[2]);
  end if;
  perform rdq._check_headers(task.headers);
  if error is not null then
    perform rdq._check_failure('error', error);
    perform rdq._failed_at(error, clock_timestamp());
  end if;
end
$$;

comment on function rdq._check_task(rdq.task, timestamptz, jsonb, integer) is 'Refuses (RD002, RD006) a task that cannot be kept or run.';

create or replace function rdq._check_headers(headers jsonb) returns void
language plpgsql immutable
as $$
begin
  if pg_column_size(headers) > 65536 then
    perform rdq._refuse('RD002', 'headers are larger than 16 KiB', 'Move the content into the payload.');
  end if;
  if jsonb_typeof(headers) <> 'object' or jsonb_path_exists(headers, 'strict $.* ? (@.type() != "string")') then
    perform rdq._refuse('RD002',
      'headers is not a flat object of strings', 'Give an object such as {"traceparent": "00-..."}.');
  end if;
  if octet_length(headers::text) > 16384 then
    perform rdq._refuse('RD002', 'headers are larger than 16 KiB', 'Move the content into the payload.');
  end if;
  if jsonb_path_exists(headers, '$.keyvalue() ? (@.key starts with "rdq.")') then
    perform rdq._refuse('RD002',
      'headers has a key that begins with "rdq."', 'Those keys are reserved; choose another.');
  end if;
end
$$;

comment on function rdq._check_headers(jsonb) is 'Refuses (RD002) headers that cannot be kept.';

create or replace function rdq._zoned_time(argument text, value text) returns timestamptz
language plpgsql stable strict
as $$
begin
  -- Without its offset from UTC it would be another time in each session.
  if length(value) > 60
    or value collate "C" !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)? ?([Zz]|[-+][0-9]{2}(:?[0-9]{2}(:?[0-9]{2})?)?)$'
  then
    raise invalid_datetime_format;
  end if;
  return value::timestamptz;
exception when data_exception then
  perform rdq._refuse('RD002',
    format('%s is not a time with its offset from UTC: %s', argument, left(value, 60)),
    'Give a timestamp such as 2026-01-31T12:00:00Z or 2026-01-31 12:00:00+01 (ISO 8601).');
end
$$;

comment on function rdq._zoned_time(text, text) is
'A time that came as text in JSON (ISO 8601, with its offset from UTC); refuses (RD002) anything else. Null for null.';

create or replace function rdq._later(at timestamptz, moment timestamptz) returns timestamptz
language sql immutable parallel safe
return case when at > moment then at end;

comment on function rdq._later(timestamptz, timestamptz) is 'A time that is after the moment, else null: a task keeps its run_at only where it had to wait for it.';

create or replace function rdq._failed_at(error jsonb, moment timestamptz) returns timestamptz
language sql stable
-- The producer's clock may be ahead of ours.
return least(rdq._zoned_time('error.at', error ->> 'at'), moment);

comment on function rdq._failed_at(jsonb, timestamptz) is 'When a handed-over failure happened: its "at", else the moment; refuses (RD002) what is not a time.';

create or replace function rdq._admit_new(tasks rdq.task[], run_ats timestamptz[], notify boolean) returns void
language plpgsql
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  queue constant text := tasks[1].queue;
begin
  -- Through _schedule(), which makes an array of tickets first, a bulk submit takes 1.06 times as long.
  insert into rdq.task
  select
    t.id, t.queue, t.handler, t.handler_version, t.payload, rdq._stored_type(t.content_type), nullif(t.headers, '{}'),
    t.max_attempts, t.give_up_at, t.dedupe_key, t.created_at, t.run_at
  from unnest(tasks) t;
  insert into rdq.due (task_id, queue, due_at, life, give_up_at, has_history)
  select t.id, t.queue, rdq._not_past(greatest(t.start_at, t.created_at)), 0, t.give_up_at, false
  from unnest(run_ats, tasks) as t (start_at);
  perform pg_notify('rdq_due', queue)
  from rdq._is_busy(queue, moment, transaction_timestamp()) b (busy)
  where notify and not b.busy
    and exists (select from unnest(run_ats) r (at) where r.at is null or r.at <= moment + interval '1 minute');
end
$$;

comment on function rdq._admit_new(rdq.task[], timestamptz[], boolean) is
'Stores new tasks of one queue that nobody can know yet: without an id of the caller''s, a dedupe key and a failure.';

create or replace function rdq._admit(tasks rdq.task[], run_ats timestamptz[], errors jsonb[]) returns uuid[]
language plpgsql
-- What it joins itself are arrays, of any length: by hashing, whatever length the planner expects.
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  answers uuid[] := array(select t.id from unnest(tasks) t);
  places bigint[] := array(select generate_subscripts(tasks, 1));
  ids uuid[];
  taken_keys uuid[];
  fresh bigint[];
  again bigint[];
begin
  loop
    ids := array(select t.id from unnest(tasks) t);
    if exists (select from unnest(tasks) t where t.dedupe_key is not null) then
      select j.ids, j.taken_keys into ids, taken_keys from rdq._join_by_key(tasks, errors) j;
    end if;
    with given as (
      select t.*
      from unnest(ids, tasks) with ordinality as t (joined_id)
      where t.id = t.joined_id
    ),
    inserted as (
      insert into rdq.task (
        id, queue, handler, handler_version, payload, content_type, headers, max_attempts, give_up_at, dedupe_key, created_at,
        run_at
      )
      select
        g.id, g.queue, g.handler, g.handler_version, g.payload, rdq._stored_type(g.content_type),
        nullif(g.headers, '{}'), g.max_attempts, g.give_up_at, g.dedupe_key, g.created_at, g.run_at
      from given g
      order by g.id, g.ordinality
      on conflict on constraint task_pkey do nothing
      returning task.id
    )
    select array_agg(f.ordinality) into fresh
    from (
      select distinct on (g.id) g.ordinality
      from given g
      join inserted i on i.id = g.id
      order by g.id, g.ordinality
    ) f;

    perform rdq._schedule(array_agg(row(t.id, t.queue, greatest(t.start_at, moment), 0, t.give_up_at, true)::rdq.due))
    from unnest(run_ats, errors, tasks) with ordinality as t (start_at, error)
    join unnest(fresh) f (ordinality) on f.ordinality = t.ordinality
    where t.error is null
    having count(*) > 0;

    perform rdq._conclude(
      array_agg(rdq._failed_attempt(t.id, t.queue, 0, t.error, rdq._failed_at(t.error, moment))),
      array_agg(t.give_up_at),
      array_agg(greatest(t.start_at, (
        select moment + rdq._asked_to_wait(t.error, q.backoff_cap, q.jitter, t.give_up_at - moment)
        from rdq.queue q
        where q.queue = t.queue
        limit 1
      )))
    )
    from unnest(run_ats, errors, tasks) with ordinality as t (start_at, error)
    join unnest(fresh) f (ordinality) on f.ordinality = t.ordinality
    where t.error is not null
    having count(*) > 0;

    for i in 1 .. cardinality(places) loop
      answers[places[i]] := ids[i];
    end loop;
    exit when cardinality(fresh) = cardinality(tasks);
    again := rdq._known_no_more(tasks, ids, taken_keys, fresh);
    exit when again = '{}';
    -- The rest once more, as if it had come a moment later.
    places := array(select places[a] from unnest(again) a);
    tasks := array(select tasks[a] from unnest(again) a);
    run_ats := array(select run_ats[a] from unnest(again) a);
    errors := array(select errors[a] from unnest(again) a);
  end loop;
  return answers;
end
$$;

comment on function rdq._admit(rdq.task[], timestamptz[], jsonb[]) is
'Stores new tasks with their first tickets, or with their handed-over failure as attempt 1; returns for each the id of the task that stands for it.';

create or replace function rdq._known_no_more(tasks rdq.task[], ids uuid[], taken_keys uuid[], fresh bigint[])
returns bigint[]
language plpgsql
as $$
declare
  stranger record;
begin
  select k.id, k.queue into stranger
  from unnest(tasks) t
  cross join lateral (select k.id, k.queue from rdq.task k where k.id = t.id limit 1) k
  where k.queue <> t.queue
  limit 1;
  if found then
    perform rdq._refuse('RD005',
      format('task_id %s exists already in %s', stranger.id, case
        when rdq._permitted(stranger.queue, rdq._queue_patterns('producer')) then format('queue "%s"', stranger.queue)
        else 'another queue'
      end),
      'A task id names one task for as long as that task is kept. Submit with another id, or to that queue.');
  end if;
  -- A key that we took for a task that another transaction stored first, without it.
  perform rdq._free_keys(array(
    select unnest(taken_keys)
    except
    select t.id from unnest(tasks) with ordinality t join unnest(fresh) f (ordinality) on f.ordinality = t.ordinality
  ));
  -- A key of a task that somebody removed by hand.
  perform rdq._free_keys(array(
    select t.id from unnest(ids) t (id) where (select k.id from rdq.task k where k.id = t.id) is null
  ));
  -- One that was known has been purged since, or one whose key was joined has died since, perhaps by its own
  -- error in this very call.
  return array(
    select t.ordinality
    from unnest(ids, tasks) with ordinality as t (joined_id)
    where (select k.id from rdq.task k where k.id = t.joined_id) is null
      or (t.joined_id <> t.id and (select d.task_id from rdq.dead d where d.task_id = t.joined_id) is not null)
    order by t.ordinality
  );
end
$$;

comment on function rdq._known_no_more(rdq.task[], uuid[], uuid[], bigint[]) is
'Of a submit of which some tasks were there before: the places of those that are not any more. Refuses (RD005) an id of another queue.';

create or replace function rdq._join_by_key(
  tasks rdq.task[],
  errors jsonb[],
  out ids uuid[],
  out taken_keys uuid[]
)
language plpgsql
as $$
declare
  keyed record;
  holder uuid;
begin
  ids := array(select t.id from unnest(tasks) t);
  -- In the order of the hashes, so that two bulk submits with the same keys wait and do not deadlock.
  for keyed in
    select
      t.id, t.queue, h.key_hash, t.ordinality,
      t.error is not null and rdq._classify(
        t.error ->> 'class', t.error ->> 'type', (select q.error_rules from rdq.queue q where q.queue = t.queue)
      ) = 'PERMANENT' as dies_at_once
    from unnest(errors, tasks) with ordinality as t (error)
    cross join lateral (select sha256(convert_to(t.dedupe_key, 'UTF8')) as key_hash) h
    where t.dedupe_key is not null
      and (select k.id from rdq.task k where k.id = t.id) is null
    order by h.key_hash, t.ordinality
  loop
    if keyed.dies_at_once then
      holder := (select d.task_id from rdq.dedupe d where d.queue = keyed.queue and d.key_hash = keyed.key_hash);
      if holder is not null and rdq._bury_doomed(holder) then
        holder := null;
      end if;
    else
      holder := rdq._hold_key(keyed.queue, keyed.key_hash, keyed.id);
      if holder is null then
        taken_keys := taken_keys || keyed.id;
      end if;
    end if;
    ids[keyed.ordinality] := coalesce(holder, keyed.id);
  end loop;
end
$$;

comment on function rdq._join_by_key(rdq.task[], jsonb[]) is
'For each task the id of the live one that has its dedupe key, or its own; and the ids for which the key was free and is taken now.';

create or replace function rdq._hold_key(queue text, key_hash bytea, task_id uuid) returns uuid
language plpgsql
as $$
declare
  holder uuid;
begin
  loop
    insert into rdq.dedupe (queue, key_hash, task_id)
    values (_hold_key.queue, _hold_key.key_hash, _hold_key.task_id)
    on conflict do nothing;
    if found then
      return null;
    end if;
    -- Its holder may have ended since: then the key is free, and the next turn takes it. A row of the
    -- same id under another key is a concurrent submit of the same task.
    select d.task_id into holder
    from rdq.dedupe d
    where (d.queue = _hold_key.queue collate "C" and d.key_hash = _hold_key.key_hash) or d.task_id = _hold_key.task_id
    order by d.task_id = _hold_key.task_id desc
    limit 1;
    -- One that can never run again is buried, not joined; or somebody else has buried it while we waited for its ticket.
    if found and not rdq._bury_doomed(holder) and exists (select from rdq.dedupe d where d.task_id = holder) then
      return holder;
    end if;
  end loop;
end
$$;

comment on function rdq._hold_key(text, bytea, uuid) is
'Takes a dedupe key for a task: null when it is taken, else the id of the live task that has it. Waits for a submit of the same key that has not committed.';

create or replace function rdq._bury_doomed(task_id uuid) returns boolean
language plpgsql
set enable_seqscan = off
set enable_nestloop = on
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  moment constant timestamptz := clock_timestamp();
  doomed boolean;
  ticket rdq.due;
  held rdq.lease;
begin
  -- As a claim would find it.
  select coalesce(d.give_up_at <= moment, false)
    or rdq._spent(h.runs, h.releases, q.max_releases) >= coalesce(t.max_attempts, q.max_attempts)
  into doomed
  from rdq.due d
  cross join lateral (select t.max_attempts from rdq.task t where t.id = d.task_id limit 1) t
  cross join lateral (select q.max_attempts, q.max_releases from rdq.queue q where q.queue = d.queue limit 1) q
  cross join lateral rdq._tally(d.task_id, d.life, d.has_history) h
  where d.task_id = _bury_doomed.task_id;
  if found and not doomed then
    return false;
  elsif found then
    delete from rdq.due d where d.task_id = _bury_doomed.task_id returning d.* into ticket;
    if not found then
      return false;
    end if;
    perform rdq._bury_unfit(array[ticket], moment);
    return true;
  end if;
  -- As a reclaim would. What is locked is being ended or renewed; waiting for it here, in the order of the keys, could
  -- deadlock with a report, which goes in the order of the ids.
  select l.* into held
  from rdq.lease l
  where l.task_id = _bury_doomed.task_id and l.expires_at <= moment and l.give_up_at <= moment
    and l.claimed_at >= rdq._claimed_from(moment)
  for update skip locked;
  if not found then
    return false;
  end if;
  perform rdq._conclude(
    array(select rdq._vanished_attempt(l, moment) from unnest(rdq._take(array[held.task_id], array[held.claim_token])) l),
    array[held.give_up_at], array[null::timestamptz]
  );
  return true;
end
$$;

comment on function rdq._bury_doomed(uuid) is
'Buries a live task that can never run again: it waits, or its lease has ended, and its deadline has passed or its budget is spent. Whether it did.';
