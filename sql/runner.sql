-- Runners: what one asks before it works, and what it says of itself while it does. Nothing depends on
-- the registry: a runner that never says a word claims and reports like any other.

create or replace function rdq.policies(queues text[])
returns table (queue text, handler_timeout interval, on_version_mismatch text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  chosen constant text[] := rdq._chosen_queues(queues);
begin
  return query
  select q.queue, q.handler_timeout, q.on_version_mismatch
  from rdq.queue q
  where q.queue = any (chosen)
  order by q.queue;
end
$$;

comment on function rdq.policies(text[]) is
'What a runner applies itself in the queues (null: all that the caller may work in): when to end an attempt, and what to do with a task of another handler version (run or dead). Errors: RD001, RD007.';

create or replace function rdq.runner_seen(
  runner text,
  host text,
  version text,
  code_version text default null,
  queues text[] default null,
  concurrency integer default 0,
  in_flight integer default 0,
  unreported integer default 0
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment constant timestamptz := clock_timestamp();
  patterns constant text[] := rdq._queue_patterns('worker');
begin
  perform rdq._check_worker(runner, code_version);
  -- "All" of somebody who may work in some are those: who looks does not know who works.
  if queues is null and patterns is not null and '%' <> all (patterns) then
    queues := rdq._chosen_queues(null);
  end if;
  insert into rdq.runner as r (
    runner, host, version, code_version, queues, concurrency, in_flight, unreported, started_at, seen_at
  )
  values (
    runner_seen.runner, left(coalesce(host, ''), 240), left(coalesce(version, ''), 240), runner_seen.code_version,
    runner_seen.queues, coalesce(concurrency, 0), coalesce(in_flight, 0), coalesce(unreported, 0), moment, moment
  )
  on conflict on constraint runner_pkey do update set
    host = excluded.host,
    version = excluded.version,
    code_version = excluded.code_version,
    queues = excluded.queues,
    concurrency = excluded.concurrency,
    in_flight = excluded.in_flight,
    unreported = excluded.unreported,
    seen_at = excluded.seen_at;
  -- Those that were killed long ago.
  delete from rdq.runner r
  where r.ctid = any (array(
    select o.ctid from rdq.runner o where o.seen_at < moment - interval '1 day' limit 100 for update skip locked
  ));
end
$$;

comment on function rdq.runner_seen(text, text, text, text, text[], integer, integer, integer) is
'Notes in rdq.runners that a runner lives, and what it is doing; runners call it every few seconds. Errors: RD002.';

create or replace function rdq.runner_gone(runner text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from rdq.runner r where r.runner = runner_gone.runner;
end
$$;

comment on function rdq.runner_gone(text) is 'Takes a runner that has stopped out of rdq.runners.';
