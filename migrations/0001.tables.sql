-- What rdq holds. A task is written once; its ticket, one small row, says where it is:
--
--   rdq.due    waiting          rdq.dead     a dead letter
--   rdq.lease  held             no ticket    the last attempt succeeded
--
-- A transition deletes one ticket and writes at most one other in the same transaction, so whoever took
-- the ticket is the only one who can go on. No table has a foreign key to rdq.task: its check would lock
-- the task row at every transition, and only the functions of sql/ write here.
--
-- Every statement can be run again.

create schema if not exists rdq;

create table if not exists rdq.queue (
  queue text primary key check (queue ~ '^[a-z0-9][a-z0-9._-]*$' and length(queue) <= 240),
  max_attempts integer not null check (max_attempts >= 1),
  ambiguous_attempts integer not null check (ambiguous_attempts >= 1),
  vanish_limit integer not null check (vanish_limit >= 1),
  max_releases integer not null check (max_releases >= 0),
  backoff_base interval not null check (backoff_base >= interval '0'),
  backoff_factor double precision not null check (backoff_factor >= 1),
  backoff_cap interval not null check (backoff_cap >= interval '0'),
  ladder interval[] check (cardinality(ladder) > 0),
  jitter double precision not null check (jitter between 0 and 1),
  lease interval not null check (lease > interval '0'),
  handler_timeout interval check (handler_timeout > interval '0'),
  give_up_after interval check (give_up_after > interval '0'),
  error_rules jsonb not null check (jsonb_typeof(error_rules) = 'array'),
  keep_succeeded interval check (keep_succeeded >= interval '0'),
  keep_dead interval check (keep_dead >= interval '0'),
  max_payload_bytes integer not null check (max_payload_bytes >= 0),
  notify boolean not null,
  paused_at timestamptz,
  pause_reason text,
  created_at timestamptz not null
);

-- What was asked. Only rdq.redrive with an edited payload changes a row, and its audit keeps both. What most tasks
-- have takes no room: a null content_type is that of text, an empty one that of JSON; headers are null where
-- there are none. rdq._task() reads it so.
create table if not exists rdq.task (
  id uuid primary key,
  queue text not null,
  handler text not null,
  handler_version text,
  payload bytea not null,
  content_type text,
  headers jsonb,
  max_attempts integer,
  give_up_at timestamptz,
  dedupe_key text,
  created_at timestamptz not null
);

-- has_history is false on the first ticket of a task whose id was made by the submit that wrote it: a claim need not
-- look for attempts then. On any other it is true.
create table if not exists rdq.due (
  task_id uuid primary key,
  queue text not null,
  due_at timestamptz not null,
  life integer not null,
  give_up_at timestamptz,
  has_history boolean not null default true
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index if not exists due_by_time on rdq.due (queue, due_at);

-- Deadlines that pass while nobody claims.
create index if not exists due_by_deadline on rdq.due (queue, give_up_at) where give_up_at is not null;

create table if not exists rdq.lease (
  task_id uuid primary key,
  claim_token uuid not null,
  queue text not null,
  life integer not null,
  give_up_at timestamptz,
  runner text not null,
  code_version text,
  claimed_at timestamptz not null,
  expires_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index if not exists lease_by_expiry on rdq.lease (queue, expires_at);

-- From where walks over the tickets of a queue start, as sql/low_water.sql explains. looked_at and running say when
-- the last look was and which transactions ran then, bottom_at when one last started from the very bottom.
create table if not exists rdq.low_water (
  queue text primary key,
  due_from timestamptz not null,
  expires_from timestamptz not null,
  looked_at timestamptz not null,
  bottom_at timestamptz not null,
  running xid8[] not null
);

create table if not exists rdq.dead (
  task_id uuid primary key,
  queue text not null,
  handler text not null,
  life integer not null,
  dead_at timestamptz not null,
  reason text not null check (reason in (
    'EXHAUSTED', 'PERMANENT', 'AMBIGUOUS', 'DEADLINE', 'VANISHED', 'UNROUTABLE', 'CANCELLED'
  )),
  error_class text,
  error_type text,
  message text,
  fingerprint text not null,
  code_version text,
  -- The bulk redrive that began the life which ended here.
  redrive_id uuid
);

create index if not exists dead_by_time on rdq.dead (dead_at, task_id);
create index if not exists dead_by_queue on rdq.dead (queue, dead_at, task_id);
create index if not exists dead_by_fingerprint on rdq.dead (fingerprint, dead_at, task_id);

-- Every execution, for as long as the task is kept. started_at is null for the one failure that a
-- producer hands over: it happened before rdq and spends nothing. claim_token is kept where somebody
-- other than the holder ended the claim, so that a late report finds its attempt.
create table if not exists rdq.attempt (
  task_id uuid not null,
  attempt_no integer not null,
  life integer not null,
  queue text not null,
  outcome text not null check (outcome in ('SUCCEEDED', 'FAILED', 'LEASE_EXPIRED', 'RELEASED')),
  error_class text check (error_class in ('TRANSIENT', 'PERMANENT', 'AMBIGUOUS')),
  error_type text,
  message text,
  stack text,
  detail jsonb,
  runner text,
  code_version text,
  started_at timestamptz,
  finished_at timestamptz not null,
  claim_token uuid,
  late_outcome text check (late_outcome in ('SUCCEEDED', 'FAILED', 'RELEASED')),
  late_at timestamptz,
  primary key (task_id, attempt_no),
  check ((outcome = 'FAILED') = (error_class is not null)),
  check (started_at is not null or (attempt_no = 1 and outcome = 'FAILED'))
);

-- Retention of what succeeded: per queue, from the moment it ended.
create index if not exists attempt_by_success on rdq.attempt (queue, finished_at) where outcome = 'SUCCEEDED';

-- A row while the task that carries the key is PENDING or IN_FLIGHT. The key itself may be long: its
-- SHA-256 is indexed.
create table if not exists rdq.dedupe (
  queue text not null,
  key_hash bytea not null,
  task_id uuid not null unique,
  primary key (queue, key_hash)
);

-- A bulk redrive: what it may touch, how far it has come, and what became of what it sent. The cursor is
-- the last dead letter looked at; next_due_at keeps the pace. While the phase is CANARY only a few are
-- out. A share of deaths is judged over what ended after the last resume.
create table if not exists rdq.redrive_run (
  redrive_id uuid primary key,
  state text not null check (state in ('RUNNING', 'PAUSED', 'HALTED', 'DONE', 'CANCELLED')),
  state_reason text,
  phase text not null check (phase in ('CANARY', 'REST')),
  filter jsonb not null,
  queues text[],
  per_second double precision check (per_second > 0),
  canary integer not null check (canary >= 0),
  halt_at double precision check (halt_at > 0 and halt_at <= 1),
  halt_min integer not null check (halt_min >= 1),
  reason text,
  actor text not null,
  began_at timestamptz not null,
  finished_at timestamptz,
  settled_at timestamptz,
  matched bigint not null,
  sent bigint not null,
  succeeded bigint not null,
  died bigint not null,
  key_held bigint not null,
  no_longer_dead bigint not null,
  succeeded_before bigint not null,
  died_before bigint not null,
  next_due_at timestamptz not null,
  cursor_at timestamptz not null,
  cursor_id uuid not null
);

-- Those that may have something to do.
create index if not exists redrive_run_open on rdq.redrive_run (began_at) where settled_at is null;

-- What a bulk redrive has sent: a row until the end of that life is known and counted.
create table if not exists rdq.redriven (
  task_id uuid not null,
  life integer not null,
  redrive_id uuid not null,
  outcome text check (outcome in ('SUCCEEDED', 'DEAD')),
  -- With the redrive: a task that was purged may be submitted again with its id, and begin anew.
  primary key (task_id, life, redrive_id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index if not exists redriven_uncounted on rdq.redriven (redrive_id) where outcome is not null;

create table if not exists rdq.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  actor text not null,
  action text not null,
  queue text,
  task_id uuid,
  redrive_id uuid,
  filter jsonb,
  affected bigint not null,
  reason text,
  before jsonb,
  after jsonb
);

create index if not exists audit_by_time on rdq.audit (at);

-- Who may do what, and in which queues (globs); the functions ask, since they run with the owner's rights.
create table if not exists rdq.access (
  role text not null,
  capability text not null check (capability in ('producer', 'worker', 'operator', 'viewer', 'admin')),
  queues text[] not null,
  primary key (role, capability)
);
