-- History: every attempt is one row, kept as long as the task. It is the source of truth for numbers and
-- budgets (rule 3): nothing is counted anywhere else, so a redrive has no counter to reset and a crash
-- none to lose.

create or replace function rdq.history(task_id uuid)
returns table (
  attempt_no integer,
  life integer,
  outcome text,
  error_class text,
  error_type text,
  message text,
  stack text,
  detail jsonb,
  runner text,
  code_version text,
  started_at timestamptz,
  finished_at timestamptz,
  late_outcome text,
  late_at timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform rdq._task(task_id, 'viewer');
  return query
  select
    a.attempt_no, a.life, a.outcome, a.error_class, a.error_type, a.message, a.stack, a.detail, a.runner,
    a.code_version, a.started_at, a.finished_at, a.late_outcome, a.late_at
  from rdq.attempt a
  where a.task_id = history.task_id
  order by a.attempt_no;
end
$$;

comment on function rdq.history(uuid) is
'Every attempt of a task, oldest first. A null started_at marks the failure that the producer handed over; late_outcome is what was reported after the claim had been lost. Errors: RD003.';

create or replace function rdq.envelope(task_id uuid) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  task constant rdq.task := rdq._task(task_id, 'viewer');
begin
  return to_jsonb(task) - 'payload'
    || jsonb_build_object(
      'payload', translate(encode(task.payload, 'base64'), E'\n', ''),
      'status', rdq._status(task.id),
      'attempts', (
        select coalesce(jsonb_agg(to_jsonb(h) order by h.attempt_no), '[]')
        from rdq.history(task.id) h
      ),
      'dead', (
        select to_jsonb(d) - '{task_id,queue,handler}'::text[]
        from rdq.dead d
        where d.task_id = task.id
      )
    );
end
$$;

comment on function rdq.envelope(uuid) is
'The whole task as one JSON object: what was asked (payload in base64), its status, every attempt, and the dead letter if it is one. Errors: RD003.';

create or replace function rdq._task(task_id uuid) returns rdq.task
language plpgsql stable
as $$
declare
  found_task rdq.task;
begin
  select t.* into found_task from rdq.task t where t.id = _task.task_id;
  if not found then
    perform rdq._refuse_unknown_task(task_id);
  end if;
  found_task.content_type := rdq._content_type(found_task.content_type);
  found_task.headers := coalesce(found_task.headers, '{}');
  return found_task;
end
$$;

comment on function rdq._task(uuid) is 'What was asked; refuses (RD003) a task that does not exist.';

create or replace function rdq._task(task_id uuid, capability text) returns rdq.task
language plpgsql stable
as $$
declare
  found_task constant rdq.task := rdq._task(task_id);
begin
  if not rdq._permitted(found_task.queue, rdq._queue_patterns(capability)) then
    if not rdq._permitted(found_task.queue, rdq._queue_patterns('viewer')) then
      perform rdq._refuse_unknown_task(task_id);
    end if;
    perform rdq._require(capability, found_task.queue);
  end if;
  return found_task;
end
$$;

comment on function rdq._task(uuid, text) is
'What was asked of a task in whose queue the caller has the capability. Who may not see the queue is told that there is no such task (RD003), who only may not act is told so (RD007).';

create or replace function rdq._refuse_unknown_task(task_id uuid) returns void
language plpgsql
as $$
begin
  perform rdq._refuse('RD003',
    format('task %s does not exist', coalesce(task_id::text, 'null')),
    'It was never submitted here, it was purged (select * from rdq.audit_log shows it), or it is in a queue that you may not see.');
end
$$;

comment on function rdq._refuse_unknown_task(uuid) is 'Refuses (RD003) a task that does not exist, or not for the caller: in the same words.';

create or replace function rdq._status(task_id uuid) returns text
language plpgsql volatile
-- Volatile: it sees what the calling statement itself has changed.
as $$
begin
  return case
    when exists (select from rdq.due d where d.task_id = _status.task_id) then 'PENDING'
    when exists (select from rdq.lease l where l.task_id = _status.task_id) then 'IN_FLIGHT'
    when exists (select from rdq.dead d where d.task_id = _status.task_id) then 'DEAD'
    when exists (select from rdq.task t where t.id = _status.task_id) then 'SUCCEEDED'
  end;
end
$$;

comment on function rdq._status(uuid) is 'The state of a task, which is the table that holds its ticket; null for a task that does not exist.';

create or replace function rdq._status_for_worker(task_id uuid) returns text
language sql volatile
return (
  select rdq._status(t.id)
  from rdq.task t
  where t.id = _status_for_worker.task_id and rdq._permitted(t.queue, rdq._queue_patterns('worker'))
);

comment on function rdq._status_for_worker(uuid) is 'The state of a task; null also where it is in a queue in which the caller may not work.';

create or replace function rdq._tally(task_id uuid, life integer, has_history boolean)
returns table (
  next_no integer,
  first_no integer,
  runs bigint,
  rungs bigint,
  releases bigint,
  ambiguous bigint,
  vanished bigint
)
language sql stable
-- Inlined into its callers, so it reads with their snapshot: whoever sees a ticket sees the attempts that
-- were written with it. Walks attempt_pkey over the task's own rows, a bounded number.
as $$
  select
    coalesce(max(a.attempt_no), 0) + 1,
    min(a.attempt_no) filter (where a.life = _tally.life),
    count(*) filter (where a.life = _tally.life and a.outcome <> 'RELEASED' and a.started_at is not null),
    count(*) filter (where a.life = _tally.life and a.outcome <> 'RELEASED'),
    count(*) filter (where a.life = _tally.life and a.outcome = 'RELEASED'),
    count(*) filter (where a.life = _tally.life and a.error_class = 'AMBIGUOUS' and a.started_at is not null),
    -- Numbers have no holes: what follows the last other row is the vanished in a row.
    (coalesce(max(a.attempt_no), 0) - coalesce(
      max(a.attempt_no) filter (where a.life <> _tally.life or a.outcome <> 'LEASE_EXPIRED'), 0
    ))::bigint
  from rdq.attempt a
  where a.task_id = _tally.task_id and has_history
$$;

comment on function rdq._tally(uuid, integer, boolean) is
'What the history says about a life: the next attempt number, the first of this life, runs, rungs of the ladder climbed, releases, ambiguous failures, and attempts that vanished in a row. Without has_history it does not look.';
