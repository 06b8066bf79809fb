-- Groups are counted in several ways, by the filter and by what vacuum has seen. Each gives what one look at every
-- dead letter gives.
begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

create temporary table sample (filter text, condition text);
insert into sample values
  ('', 'true'),
  ($$ queue => 'a' $$, $$ queue = 'a' $$),
  ($$ queue => 'b', dead_reason => 'PERMANENT' $$, $$ queue = 'b' and reason = 'PERMANENT' $$),
  ($$ handler => 'h-1' $$, $$ handler = 'h-1' $$),
  ($$ error_type => 'E*3' $$, $$ error_type like 'E%3' $$),
  ($$ error_class => 'PERMANENT' $$, $$ error_class = 'PERMANENT' $$),
  ($$ dead_reason => 'EXHAUSTED' $$, $$ reason = 'EXHAUSTED' $$),
  ($$ fingerprint => 'fp-4' $$, $$ fingerprint = 'fp-4' $$),
  ($$ fingerprint => 'fp-4', queue => 'a' $$, $$ fingerprint = 'fp-4' and queue = 'a' $$),
  ($$ since => '-infinity', until => 'infinity' $$, 'true'),
  ($$ since => '2026-01-01 00:30Z' $$, $$ dead_at >= '2026-01-01 00:30Z' $$),
  ($$ until => '2026-01-01 00:30Z' $$, $$ dead_at < '2026-01-01 00:30Z' $$),
  ($$ queue => 'a', since => '2026-01-01 00:30Z', until => '2026-01-01 01:40Z' $$,
    $$ queue = 'a' and dead_at >= '2026-01-01 00:30Z' and dead_at < '2026-01-01 01:40Z' $$);

select plan(3 * count(*)::integer) from sample;

select rdq.create_queue(q.queue) from unnest('{a,b}'::text[]) q (queue);
select pg_temp.create_role('viewer', '{b}');

-- Of most causes the older ones are of another queue and another reason than the newer ones; some have more than
-- a thousand.
insert into rdq.task
select
  rdq.uuid_v7(), case when n < 5400 then 'a' else 'b' end, 'h-' || n % 2, null, 'x', 'text/plain', '{}', n, null, null, '2026-01-01Z'
from generate_series(1, 9000) n;

insert into rdq.dead (
  task_id, queue, handler, life, dead_at, reason, error_class, error_type, message, fingerprint, code_version
)
select
  t.id, t.queue, t.handler, 0, '2026-01-01Z'::timestamptz + max_attempts * interval '1 second',
  case when max_attempts % 1000 < 600 then 'EXHAUSTED' else 'PERMANENT' end,
  case when max_attempts < 3000 then 'TRANSIENT' when max_attempts < 7000 then 'PERMANENT' end,
  'E' || c.cause, 'message ' || max_attempts, 'fp-' || c.cause, case when max_attempts > 500 then 'v' || max_attempts / 1500 end
from rdq.task t
cross join lateral (select case when max_attempts % 4 < 2 then max_attempts % 2 else max_attempts % 10 end as cause) c;

create function pg_temp.expected(condition text) returns text
language plpgsql
as $$
declare
  found_groups text;
begin
  execute format($q$
    select jsonb_agg(to_jsonb(g) order by g.count desc, g.fingerprint)
    from (
      select
        fingerprint, min(handler) as handler, min(error_type) as error_type, count(*), min(dead_at) as first_dead_at, max(dead_at) as last_dead_at,
        array_agg(distinct queue order by queue) as queues, array_agg(distinct reason) as dead_reasons,
        array_agg(distinct error_class) filter (where error_class is not null) as error_classes,
        array_agg(distinct code_version) filter (where code_version is not null) as code_versions,
        (array_agg(task_id order by dead_at desc))[1] as sample_task_id,
        (array_agg(message order by dead_at desc))[1] as sample_message,
        round(count(*) / sum(count(*)) over (), 6) as share, false as growing
      from rdq.dead
      where %s
      group by fingerprint
    ) g
  $q$, condition) into found_groups;
  return found_groups;
end
$$;

create function pg_temp.groups(filter text) returns text
language sql
return format(
  $q$ select jsonb_agg(to_jsonb(g) || jsonb_build_object('share', round(g.share::numeric, 6))) from rdq.dead_letter_groups(%s) g $q$,
  filter
);

create function pg_temp.answer(statement text) returns text
language plpgsql
as $$
declare
  answer text;
begin
  execute statement into answer;
  return answer;
end
$$;

update pg_class set relallvisible = 0 where oid = 'rdq.dead'::regclass;
select is(pg_temp.answer(pg_temp.groups(s.filter)), pg_temp.expected(s.condition), 'walked:' || s.filter) from sample s;
update pg_class set relallvisible = 1000000 where oid = 'rdq.dead'::regclass;
select is(pg_temp.answer(pg_temp.groups(s.filter)), pg_temp.expected(s.condition), 'counted:' || s.filter) from sample s;
select is(
  pg_temp.as_role('rdq_test_viewer', pg_temp.groups(s.filter)),
  coalesce(pg_temp.expected(format('(%s) and queue <> %L', s.condition, 'a')), ''),
  'for a viewer of one of the queues:' || s.filter)
from sample s
where s.filter not like '%queue => ''a''%';
select is(
  (pg_temp.error_of(format('set local role rdq_test_viewer; select pg_temp.answer(%L)', pg_temp.groups(s.filter)))).code, 'RD007',
  'of a queue that it may not see:' || s.filter)
from sample s
where s.filter like '%queue => ''a''%';

select * from finish();
rollback;
