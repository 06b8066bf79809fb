-- Runners: what one asks before it works, and what it says of itself while it does. Nothing depends on
-- the registry: a runner that never says a word claims and reports like any other. But people trust what it
-- says, so an entry is changed by nobody but the role that wrote it, while it lives, and names only queues
-- in which that role may work.

create or replace function rdq.policies(queues text[])
returns table (queue text, handler_timeout interval, on_version_mismatch text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  chosen constant text[] collate "C" := rdq._chosen_queues(queues);
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
set lock_timeout = '1s'
as $$
declare
  moment constant timestamptz := clock_timestamp();
  patterns constant text[] := rdq._queue_patterns('worker');
  known text[] collate "C";
begin
  perform rdq._check_worker(runner, code_version);
  -- "All" of somebody who may work in some are those: who looks does not know who works. And a name that is none of a
  -- queue, or of one in which the caller may not work, is left out.
  if queues is not null or '%' <> all (patterns) then
    known := array(
      select q.queue
      from rdq.queue q
      where (queues is null or q.queue = any (queues[1:10000] collate "C")) and rdq._permitted(q.queue, patterns)
    );
  end if;
  insert into rdq.runner as r (
    runner, host, version, code_version, queues, concurrency, in_flight, unreported, started_at, seen_at, role
  )
  values (
    runner_seen.runner, left(coalesce(host, ''), 240), left(coalesce(version, ''), 240), runner_seen.code_version,
    known, coalesce(concurrency, 0), coalesce(in_flight, 0), coalesce(unreported, 0), moment, moment, rdq._caller()
  )
  on conflict on constraint runner_pkey do update set
    host = excluded.host,
    version = excluded.version,
    code_version = excluded.code_version,
    queues = excluded.queues,
    concurrency = excluded.concurrency,
    in_flight = excluded.in_flight,
    unreported = excluded.unreported,
    seen_at = excluded.seen_at,
    role = excluded.role
  where rdq._may_change_runner(r);
  if not found then
    perform rdq._refuse('RD007',
      format('runner "%s" is one of another role, and alive', left(runner, 60)),
      'Give each runner a name of its own. One that has not been seen for 30 seconds can be taken over.');
  end if;
  -- Those that were killed long ago.
  delete from rdq.runner r
  where r.ctid = any (array(
    select o.ctid from rdq.runner o where o.seen_at < moment - interval '1 day' limit 100 for update skip locked
  ));
exception when lock_not_available then
  perform rdq._refuse_busy(format('the entry of runner "%s"', left(runner, 60)));
end
$$;

comment on function rdq.runner_seen(text, text, text, text, text[], integer, integer, integer) is
'Notes in rdq.runners that a runner lives, and what it is doing; runners call it every few seconds. Of its queues those are kept that exist and in which the caller may work. The entry of a live runner is changed only by the role that wrote it. Errors: RD002, RD007, RD010.';

create or replace function rdq.runner_gone(runner text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
begin
  delete from rdq.runner r where r.runner = runner_gone.runner collate "C" and rdq._may_change_runner(r);
exception when lock_not_available then
  perform rdq._refuse_busy(format('the entry of runner "%s"', left(runner, 60)));
end
$$;

comment on function rdq.runner_gone(text) is
'Takes a runner that has stopped out of rdq.runners; one of another role only where it has not been seen for 30 seconds. Errors: RD010.';

create or replace function rdq._may_change_runner(runner rdq.runner) returns boolean
language sql stable
return rdq._is_owner() or runner.role is not distinct from rdq._caller()::text collate "C"
  or runner.seen_at < clock_timestamp() - interval '30 seconds';

comment on function rdq._may_change_runner(rdq.runner) is
'Whether the caller may change an entry of the registry: it wrote it, or nobody has for 30 seconds.';
