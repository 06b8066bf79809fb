-- Queues: named units of policy. A setting that is wrong is refused here, so that applying a policy to a
-- failure cannot fail later; policy is read when it is applied (rule 7), so a change reaches the tasks
-- that are already there. Each change is audited with the settings before and after.

create or replace function rdq.create_queue(queue text, settings jsonb default '{}') returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._check_name('queue', queue);
  perform rdq._require('admin', queue);
  perform rdq._configure(queue, settings, 'create_queue');
end
$$;

comment on function rdq.create_queue(text, jsonb) is
'Creates a queue, or applies the settings to the one that exists. Keys that are not given have their default, or keep their value. Errors: RD002.';

create or replace function rdq.alter_queue(queue text, settings jsonb) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._require('admin', queue);
  perform rdq._configure(queue, settings, 'alter_queue');
end
$$;

comment on function rdq.alter_queue(text, jsonb) is
'Changes the settings that are given; null puts a setting back to its default. It holds at once, for the tasks that are already in the queue too. Errors: RD001, RD002.';

create or replace function rdq.drop_queue(queue text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set intervalstyle = 'postgres'
as $$
declare
  before jsonb;
begin
  perform rdq._require('admin', queue);
  before := to_jsonb(rdq._queue(queue));
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform rdq._refuse('RD004',
      format('queue "%s" cannot be dropped in a transaction that is %s', queue, current_setting('transaction_isolation')),
      'It may not see what was submitted since it began. Call rdq.drop_queue in a transaction that is read committed.');
  end if;
  -- No submit is under way in it while we look, and none begins before we commit: a submit holds one of the two.
  if not pg_try_advisory_xact_lock(rdq._queue_lock_class(), rdq._queue_lock(queue))
    or (select q.queue from rdq.queue q where q.queue = drop_queue.queue collate "C" for update skip locked) is null
  then
    perform rdq._refuse('RD004',
      format('queue "%s" is in use by a transaction that has not ended', queue),
      'Call again when the producers of the queue have stopped; select * from rdq.doctor() says who is in the way.');
  end if;
  if exists (select from rdq.task t where t.queue = drop_queue.queue collate "C") then
    perform rdq._refuse('RD004',
      format('queue "%s" is not empty', queue),
      format('A queue is dropped when nothing is in it. What is left in it: select status, count(*) from rdq.tasks where '
        'queue = %1$L group by status. Live tasks end with rdq.cancel_where, dead letters go with rdq.purge_where. '
        'Succeeded tasks go one by one with rdq.purge, or all of them by retention: '
        'select rdq.alter_queue(%1$L, ''{"keep_succeeded": 0}''); then rdq.tick() until it purges none.', queue));
  end if;
  perform rdq.drop_endpoint(e.queue, e.handler) from rdq.endpoint e where e.queue = drop_queue.queue collate "C";
  delete from rdq.low_water w where w.queue = drop_queue.queue collate "C";
  delete from rdq.queue q where q.queue = drop_queue.queue collate "C";
  perform rdq._audit('drop_queue', queue => queue, before => before);
exception when lock_not_available then
  perform rdq._refuse_busy(format('what is kept of queue "%s"', queue));
end
$$;

comment on function rdq.drop_queue(text) is
'Removes a queue in which nothing is: no task, live or ended. Its endpoints go with it, each with a row in the audit. Errors: RD001, RD004, RD007, RD010.';

create or replace function rdq.pause_queue(queue text, reason text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._require('operator', queue);
  perform rdq._set_pause(queue, true, reason);
end
$$;

comment on function rdq.pause_queue(text, text) is
'Stops claims from a queue; what is running goes on, submits are taken, deadlines hold. Errors: RD001.';

create or replace function rdq.resume_queue(queue text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._require('operator', queue);
  perform rdq._set_pause(queue, false, null);
  perform pg_notify('rdq_due', queue);
end
$$;

comment on function rdq.resume_queue(text) is 'Lets workers claim from a paused queue again, and wakes them. Errors: RD001.';

create or replace function rdq._set_pause(queue text, pause boolean, reason text) returns void
language plpgsql
set lock_timeout = '5s'
as $$
declare
  before rdq.queue;
  after rdq.queue;
begin
  -- Not "for update": a producer's transaction may hold the key of the row, and need not be waited for.
  select q.* into before from rdq.queue q where q.queue = _set_pause.queue collate "C" for no key update;
  after := rdq._queue(queue);
  after.paused_at := case when pause then coalesce(before.paused_at, clock_timestamp()) end;
  after.pause_reason := rdq._clip(reason, 4096);
  if after is not distinct from before then
    return;
  end if;
  update rdq.queue q
  set paused_at = after.paused_at, pause_reason = after.pause_reason
  where q.queue = _set_pause.queue collate "C";
  perform rdq._audit(case when pause then 'pause_queue' else 'resume_queue' end, queue => queue, reason => reason,
    before => jsonb_build_object('paused_at', before.paused_at, 'pause_reason', before.pause_reason),
    after => jsonb_build_object('paused_at', after.paused_at, 'pause_reason', after.pause_reason));
exception when lock_not_available then
  perform rdq._refuse_busy(format('queue "%s"', queue));
end
$$;

comment on function rdq._set_pause(text, boolean, text) is 'Pauses a queue or lets it go on; the audit says so where that changes anything.';

create or replace function rdq._queue(queue text) returns rdq.queue
language plpgsql stable
as $$
declare
  found_queue constant rdq.queue := (select q from rdq.queue q where q.queue = _queue.queue collate "C");
begin
  if found_queue.queue is null then
    perform rdq._refuse('RD001',
      format('queue %s does not exist', coalesce('"' || left(queue, 60) || '"', 'null')),
      'Create it with rdq.create_queue, or correct the name; select queue from rdq.queues lists those that exist.');
  end if;
  return found_queue;
end
$$;

comment on function rdq._queue(text) is 'The settings of a queue; refuses (RD001) one that does not exist.';

create or replace function rdq._queue_lock_class() returns integer
language sql immutable
return 7496817;

comment on function rdq._queue_lock_class() is
'The class of rdq''s advisory locks (its name in ASCII). A submit holds (this, _queue_lock(queue)) shared, rdq.drop_queue takes it alone.';

create or replace function rdq._queue_lock(queue text) returns integer
language sql immutable parallel safe
return hashtext(queue collate "C");

comment on function rdq._queue_lock(text) is 'The number of a queue among rdq''s advisory locks.';

create or replace function rdq._hold_queue(queue text) returns boolean
language plpgsql
as $$
begin
  -- In memory, without a write: a row lock on the queue would be the one place that every submit meets. It is what is
  -- left where the queue is being dropped, or a stranger has the advisory lock, which anybody can take; and where an
  -- old snapshot may show a queue that is gone: locking the row fails then.
  if not pg_try_advisory_xact_lock_shared(rdq._queue_lock_class(), rdq._queue_lock(queue))
    or current_setting('transaction_isolation') <> 'read committed'
  then
    perform rdq._hold_queue_row(queue);
  end if;
  return true;
end
$$;

comment on function rdq._hold_queue(text) is
'Returns when the queue, if there is one, cannot be dropped before this transaction ends. What is read of it is read afterwards.';

create or replace function rdq._hold_queue_row(queue text) returns void
language plpgsql
set lock_timeout = '5s'
as $$
begin
  perform from rdq.queue q where q.queue = _hold_queue_row.queue collate "C" for key share;
exception when lock_not_available then
  perform rdq._refuse_busy(format('queue "%s"', queue));
end
$$;

comment on function rdq._hold_queue_row(text) is
'Keeps a queue from being dropped by a lock on its row; waits for five seconds at most for a drop that is under way, and then refuses (RD010).';

create or replace function rdq._configure(queue text, settings jsonb, action text) returns void
language plpgsql
set lock_timeout = '5s'
set intervalstyle = 'postgres'
as $$
declare
  checked constant jsonb := rdq._checked_settings(settings);
  before rdq.queue;
  after rdq.queue := jsonb_populate_record(null::rdq.queue, rdq._default_settings() || checked);
begin
  loop
    if action = 'create_queue' then
      after.queue := queue;
      after.created_at := clock_timestamp();
      insert into rdq.queue select after.* on conflict do nothing;
      if found then
        perform rdq._audit(action, queue => queue, after => to_jsonb(after));
        return;
      end if;
    end if;
    -- Once it is locked, nobody else changes it: what others have set meanwhile stays.
    select q.* into before from rdq.queue q where q.queue = _configure.queue collate "C" for no key update;
    exit when found;
    if action <> 'create_queue' then
      perform rdq._queue(queue);
    end if;
  end loop;
  after := jsonb_populate_record(before, checked);
  if after is not distinct from before then
    return;
  end if;
  update rdq.queue q set
    max_attempts = after.max_attempts,
    ambiguous_attempts = after.ambiguous_attempts,
    vanish_limit = after.vanish_limit,
    max_releases = after.max_releases,
    backoff_base = after.backoff_base,
    backoff_factor = after.backoff_factor,
    backoff_cap = after.backoff_cap,
    ladder = after.ladder,
    jitter = after.jitter,
    lease = after.lease,
    handler_timeout = after.handler_timeout,
    give_up_after = after.give_up_after,
    error_rules = after.error_rules,
    keep_succeeded = after.keep_succeeded,
    keep_dead = after.keep_dead,
    max_payload_bytes = after.max_payload_bytes,
    on_version_mismatch = after.on_version_mismatch,
    notify = after.notify
  where q.queue = _configure.queue collate "C";
  perform rdq._audit(action, queue => queue, before => to_jsonb(before), after => to_jsonb(after));
exception when lock_not_available then
  perform rdq._refuse_busy(format('queue "%s"', queue));
end
$$;

comment on function rdq._configure(text, jsonb, text) is 'Stores a queue with its settings changed as given; the one place that writes settings.';

create or replace function rdq._setting_rules()
returns table (key text, kind text, initial jsonb, minimum double precision, maximum double precision)
language sql immutable
-- Intervals are bounded in seconds. "forever" is stored as null, and null means "none" where that is the default.
as $$
  values
    ('max_attempts', 'integer', '8'::jsonb, 1, 10000),
    ('ambiguous_attempts', 'integer', '5', 1, 10000),
    ('vanish_limit', 'integer', '3', 1, 10000),
    ('max_releases', 'integer', '10', 0, 10000),
    ('backoff_base', 'interval', '"1 minute"', 0, 315576000),
    ('backoff_factor', 'number', '2', 1, 1000),
    ('backoff_cap', 'interval', '"1 hour"', 0, 315576000),
    ('ladder', 'ladder', 'null', 0, 315576000),
    ('jitter', 'number', '0.2', 0, 1),
    ('lease', 'interval', '"1 minute"', 0.1, 2592000),
    ('handler_timeout', 'interval', 'null', 0.001, 315576000),
    ('give_up_after', 'interval', 'null', 0.001, 3155760000),
    ('error_rules', 'rules', '[]', null, null),
    ('keep_succeeded', 'retention', '"24:00:00"', 0, 3155760000),
    ('keep_dead', 'retention', '"forever"', 0, 3155760000),
    ('max_payload_bytes', 'integer', '1048576', 0, 268435456),
    ('on_version_mismatch', 'mismatch', '"run"', null, null),
    ('notify', 'boolean', 'true', null, null)
$$;

comment on function rdq._setting_rules() is 'Every setting of a queue: its kind, default and bounds (intervals in seconds).';

create or replace function rdq._default_settings() returns jsonb
language sql immutable
return (select jsonb_object_agg(r.key, nullif(r.initial, '"forever"')) from rdq._setting_rules() r);

comment on function rdq._default_settings() is 'The settings of a queue that was given none, in the form in which they are stored.';

create or replace function rdq._checked_settings(settings jsonb) returns jsonb
language plpgsql immutable
as $$
declare
  unknown text;
begin
  if settings is null or jsonb_typeof(settings) <> 'object' then
    perform rdq._refuse('RD002',
      format('settings is not an object: %s', coalesce(left(settings::text, 60), 'null')),
      'Give an object such as {"max_attempts": 3, "backoff_base": "10 seconds"}.');
  end if;
  select given.key into unknown
  from jsonb_object_keys(settings) as given (key)
  where not exists (select from rdq._setting_rules() r where r.key = given.key)
  order by given.key
  limit 1;
  if found then
    perform rdq._refuse('RD002',
      format('setting "%s" does not exist', left(unknown, 60)),
      'The settings are: ' || (select string_agg(r.key, ', ' order by r.key) from rdq._setting_rules() r) || '.');
  end if;
  return (
    select coalesce(jsonb_object_agg(r.key, rdq._checked_setting(r.key, r.kind, given.value, r.minimum, r.maximum)), '{}')
    from jsonb_each(rdq._default_settings() || jsonb_strip_nulls(settings)) as given (key, value)
    join rdq._setting_rules() r on r.key = given.key
    where settings ? r.key
  );
end
$$;

comment on function rdq._checked_settings(jsonb) is 'Settings in the form in which they are stored, null replaced by the default; refuses (RD002) what is unknown or out of bounds.';

create or replace function rdq._checked_setting(
  key text,
  kind text,
  value jsonb,
  minimum double precision,
  maximum double precision
) returns jsonb
language plpgsql immutable
as $$
declare
  content constant text := value #>> '{}';
  amount double precision;
  wanted text;
begin
  if jsonb_typeof(value) = 'null' then
    return value;
  end if;
  case kind
    when 'boolean' then
      wanted := 'true or false';
      if jsonb_typeof(value) = 'boolean' then return value; end if;
    when 'mismatch' then
      wanted := '"run" or "dead"';
      if value in ('"run"', '"dead"') then return value; end if;
    when 'rules' then
      wanted := 'an array of {"match": glob on error_type, "class": "TRANSIENT", "PERMANENT" or "AMBIGUOUS"}';
      if rdq._are_error_rules(value) then return value; end if;
    when 'ladder' then
      wanted := format('an array of 1 to 1000 intervals from %s to %s seconds', minimum, maximum);
      if jsonb_typeof(value) = 'array' and jsonb_array_length(value) between 1 and 1000 and not value @> '[null]' then
        return (
          select jsonb_agg(rdq._checked_setting(key, 'interval', rung.value, minimum, maximum) order by rung.place)
          from jsonb_array_elements(value) with ordinality as rung (value, place)
        );
      end if;
    else
      wanted := format('%s from %s to %s%s',
        case kind when 'integer' then 'a whole number' when 'number' then 'a number' else 'an interval' end,
        minimum, maximum,
        case kind when 'interval' then ' seconds' when 'retention' then ' seconds, or "forever"' else '' end);
      if kind = 'retention' and content = 'forever' then return 'null'; end if;
      if kind in ('interval', 'retention') and jsonb_typeof(value) in ('string', 'number') then
        amount := extract(epoch from case jsonb_typeof(value)
          when 'number' then make_interval(secs => content::double precision)
          else content::interval
        end);
        if amount between minimum and maximum then
          return to_jsonb(make_interval(secs => amount));
        end if;
      elsif jsonb_typeof(value) = 'number' then
        amount := content::double precision;
        if amount between minimum and maximum and (kind = 'number' or amount = trunc(amount)) then
          return to_jsonb(round(content::numeric, case kind when 'integer' then 0 else 6 end));
        end if;
      end if;
  end case;
  raise data_exception;
exception when data_exception then
  perform rdq._refuse('RD002',
    format('setting %s is not valid: %s', key, left(value::text, 60)),
    format('%s is %s.', key, wanted));
end
$$;

comment on function rdq._checked_setting(text, text, jsonb, double precision, double precision) is
'One setting as it is stored; refuses (RD002) a value of the wrong kind or out of bounds.';

create or replace function rdq._are_error_rules(value jsonb) returns boolean
language sql immutable
return jsonb_typeof(value) = 'array' and not exists (
  select
  from jsonb_path_query(value, 'lax $[*]') as rule (content)
  where jsonb_typeof(rule.content) <> 'object'
    or jsonb_typeof(rule.content -> 'match') is distinct from 'string'
    or coalesce(rule.content ->> 'class', '') not in ('TRANSIENT', 'PERMANENT', 'AMBIGUOUS')
    or rule.content - '{match,class}'::text[] <> '{}'
);

comment on function rdq._are_error_rules(jsonb) is 'Whether a value is an array of error rules.';
