-- What a runner needs to know of the database, and people of the runners. Nothing about a task depends on it.

-- What to do with a task whose handler_version is not the one that the handler has.
alter table rdq.queue add column if not exists on_version_mismatch text not null default 'run';
alter table rdq.queue alter column on_version_mismatch drop default;
alter table rdq.queue drop constraint if exists queue_on_version_mismatch_check;
alter table rdq.queue add constraint queue_on_version_mismatch_check check (on_version_mismatch in ('run', 'dead'));

-- Handlers that are HTTP callbacks. A secret is a reference (env:NAME), never a value.
create table if not exists rdq.endpoint (
  queue text not null,
  handler text not null,
  url text not null,
  timeout interval not null check (timeout > interval '0'),
  headers jsonb not null,
  secret text check (secret ~ '^env:[A-Za-z_][A-Za-z0-9_]*$'),
  response_rules jsonb not null,
  created_at timestamptz not null,
  primary key (queue, handler)
);

-- The live runners, for people to look at.
create table if not exists rdq.runner (
  runner text primary key,
  host text not null,
  version text not null,
  code_version text,
  queues text[],
  concurrency integer not null,
  in_flight integer not null,
  unreported integer not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

-- How many tasks each queue had when that was counted last, as sql/recent_stats.sql explains: a row, or none while
-- counting is quick.
create table if not exists rdq.queue_count (
  counted_at timestamptz primary key,
  took interval not null,
  counts jsonb not null
);
