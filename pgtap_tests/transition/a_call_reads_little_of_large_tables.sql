-- Many thousand rows in every table, which the planner believes to be empty: a call on a few tasks reads a
-- few rows. Counted in rows, not in time.
begin;
select plan(20);
select rdq.create_queue('q', '{"max_attempts": 100, "keep_dead": "1000 days"}');
select rdq.create_queue('other', '{"keep_succeeded": "forever", "max_attempts": 10000}');
analyze rdq.task, rdq.due, rdq.lease, rdq.dead, rdq.attempt, rdq.dedupe;

create temp table crowd as
select gen_random_uuid() as id, n, (array['due', 'future', 'lease', 'dead', 'done'])[1 + n % 5] as kind
from generate_series(1, 10000) n;
insert into rdq.task (id, queue, handler, payload, content_type, headers, created_at, give_up_at)
select id, 'other', 'h', '', 'text/plain', '{}', clock_timestamp(), clock_timestamp() + interval '1 year' from crowd;
insert into rdq.due (task_id, queue, due_at, life, give_up_at)
select id, 'other', clock_timestamp() + case kind when 'due' then interval '0' else interval '1 day' end, 0,
  clock_timestamp() + interval '1 year'
from crowd
where kind in ('due', 'future');
insert into rdq.lease (task_id, claim_token, queue, life, runner, claimed_at, expires_at)
select id, gen_random_uuid(), 'other', 0, 'tester', clock_timestamp(), clock_timestamp() + interval '1 year'
from crowd
where kind = 'lease';
insert into rdq.dead (task_id, queue, handler, life, dead_at, reason, fingerprint)
select id, 'other', 'h', 0, clock_timestamp(), 'EXHAUSTED', 'f' from crowd where kind = 'dead';
insert into rdq.dedupe (queue, key_hash, task_id)
select 'other', sha256(n::text::bytea), id from crowd where kind in ('due', 'future', 'lease');
insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, error_class, stack, started_at, finished_at, claim_token)
select
  c.id, g.n, 0, 'other', v.outcome, case v.outcome when 'FAILED' then 'TRANSIENT' end,
  case when c.n = 5000 then 'stack' end, clock_timestamp(),
  clock_timestamp(), gen_random_uuid()
from crowd c
cross join generate_series(1, 3) as g (n)
cross join lateral (
  select case when c.kind = 'done' and g.n = 3 then 'SUCCEEDED' when g.n = 2 then 'LEASE_EXPIRED' else 'FAILED' end as outcome
) v;

-- Seventy tasks of our own, each with twelve failures behind it.
select count(rdq.submit('q', 'h', 'x', dedupe_key => 'k' || n)) from generate_series(1, 70) n;
insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, error_class, stack, started_at, finished_at)
select t.id, n, 0, 'q', 'FAILED', 'TRANSIENT', 'stack', clock_timestamp(), clock_timestamp()
from rdq.task t
cross join generate_series(1, 12) n
where t.queue = 'q';

-- Ten of them are held, and their leases have ended.
with taken as (
  delete from rdq.due where task_id in (select id from rdq.task where queue = 'q' limit 10) returning task_id
)
insert into rdq.lease (task_id, claim_token, queue, life, runner, claimed_at, expires_at)
select task_id, gen_random_uuid(), 'q', 0, 'tester', clock_timestamp(), clock_timestamp() from taken;

create temp table held (task_id uuid, claim_token uuid, place integer);

-- The rows that a statement reads, of all tables of rdq together.
create function pg_temp.rows_read_by(statement text) returns bigint
language plpgsql
as $$
declare
  before bigint;
begin
  select sum(s.seq_tup_read + coalesce(s.idx_tup_fetch, 0)) into before
  from pg_stat_xact_user_tables s
  where s.schemaname = 'rdq';
  execute statement;
  return (
    select sum(s.seq_tup_read + coalesce(s.idx_tup_fetch, 0)) - before
    from pg_stat_xact_user_tables s
    where s.schemaname = 'rdq'
  );
end
$$;

-- Calls one after another, each on so many tasks.
create temp table played as
select c.place, c.call, c.tasks, pg_temp.rows_read_by(c.statement) as rows_read
from (
  values
    (0, 'reclaim', 10, $$ select count(*) from rdq.reclaim(10) $$),
    (1, 'claim', 50, $$
      insert into held select c.task_id, c.claim_token, row_number() over () from rdq.claim('{q}', 'tester', 50) c
    $$),
    (2, 'claim from all queues', 10, $$ select count(*) from rdq.claim(null, 'tester', 10) $$),
    (3, 'next_due_at', 0, $$ select rdq.next_due_at(null) $$),
    (4, 'heartbeat', 10, $$
      select rdq.heartbeat(array_agg(task_id), array_agg(claim_token)) from held where place between 1 and 10
    $$),
    (5, 'complete', 1, $$ select rdq.complete(task_id, claim_token) from held where place = 1 $$),
    (6, 'report failures', 10, $$
      select count(r)
      from (select array_agg(task_id) as ids, array_agg(claim_token) as tokens from held where place between 1 and 10) h
      cross join lateral rdq.report(h.ids, h.tokens, array_fill('{"class": "TRANSIENT"}'::jsonb, array[10])) r
    $$),
    (7, 'report successes', 10, $$
      select count(r)
      from (select array_agg(task_id) as ids, array_agg(claim_token) as tokens from held where place between 11 and 20) h
      cross join lateral rdq.report(h.ids, h.tokens, array_fill(null::jsonb, array[10])) r
    $$),
    (8, 'report late', 10, $$
      select count(r)
      from (select array_agg(task_id) as ids, array_agg(claim_token) as tokens from held where place between 11 and 20) h
      cross join lateral rdq.report(h.ids, h.tokens, array_fill(null::jsonb, array[10])) r
    $$),
    (9, 'report deaths', 10, $$
      select count(r)
      from (select array_agg(task_id) as ids, array_agg(claim_token) as tokens from held where place between 21 and 30) h
      cross join lateral rdq.report(h.ids, h.tokens, array_fill('{"class": "PERMANENT"}'::jsonb, array[10])) r
    $$),
    (10, 'release', 10, $$
      select rdq.release(array_agg(task_id), array_agg(claim_token)) from held where place between 31 and 40
    $$),
    (12, 'cancel', 1, $$ select rdq.cancel(task_id) from held where place = 31 $$),
    (13, 'redrive', 1, $$ select rdq.redrive(task_id) from held where place = 21 $$),
    (14, 'purge', 1, $$ select rdq.purge(task_id) from held where place = 22 $$),
    (15, 'submit', 1, $$ select rdq.submit('q', 'h', 'x', dedupe_key => 'new') $$),
    (16, 'submit again', 1, $$ select rdq.submit('q', 'h', 'x', dedupe_key => 'new') $$),
    (17, 'submit many', 10, $$
      select rdq.submit_many('q', to_jsonb(array_fill('{"handler": "h", "payload": "x"}'::jsonb, array[10])))
    $$),
    (18, 'tick', 1, $$ select rdq.tick(10) $$),
    (19, 'history', 1, $$ select count(*) from held cross join lateral rdq.history(task_id) where place = 23 $$),
    (20, 'a page of dead letters', 10, $$ select count(*) from rdq.dead_letters(max_rows => 10) $$)
) as c (place, call, tasks, statement);

-- Each task has twelve attempts.
select cmp_ok(rows_read, '<=', 20 + 20 * tasks::bigint, format('%s reads few rows for %s tasks', call, tasks))
from played
order by place;

select * from finish();
rollback;
