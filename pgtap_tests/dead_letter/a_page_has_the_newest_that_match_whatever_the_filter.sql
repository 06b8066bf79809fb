-- A page is found in several ways, by how rare its matches are and where they lie. Each gives what one look at
-- every dead letter gives: here, 6,000 of 16 causes.
begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

create temporary table sample (filter text, condition text);
insert into sample values
  ('', 'true'),
  ($$ queue => 'a' $$, $$ queue = 'a' $$),
  ($$ fingerprint => 'fp-3' $$, $$ fingerprint = 'fp-3' $$),
  ($$ fingerprint => 'rare' $$, $$ fingerprint = 'rare' $$),
  ($$ fingerprint => 'fp-3', queue => 'b' $$, $$ fingerprint = 'fp-3' and queue = 'b' $$),
  ($$ fingerprint => 'fp-3', dead_reason => 'PERMANENT' $$, $$ fingerprint = 'fp-3' and reason = 'PERMANENT' $$),
  ($$ handler => 'rare' $$, $$ handler = 'rare' $$),
  ($$ handler => 'none' $$, 'false'),
  ($$ handler => 'old' $$, $$ handler = 'old' $$),
  ($$ handler => 'h-1' $$, $$ handler = 'h-1' $$),
  ($$ handler => 'old', queue => 'b' $$, $$ handler = 'old' and queue = 'b' $$),
  ($$ handler => 'h-1', queue => 'empty' $$, 'false'),
  ($$ error_type => 'R?re' $$, $$ error_type = 'Rare' $$),
  ($$ error_type => '*Old*' $$, $$ error_type like '%Old%' $$),
  ($$ error_type => '*' $$, $$ error_type is not null $$),
  ($$ error_class => 'AMBIGUOUS' $$, $$ error_class = 'AMBIGUOUS' $$),
  ($$ error_class => 'PERMANENT' $$, $$ error_class = 'PERMANENT' $$),
  ($$ error_class => 'TRANSIENT' $$, $$ error_class = 'TRANSIENT' $$),
  ($$ dead_reason => 'PERMANENT' $$, $$ reason = 'PERMANENT' $$),
  ($$ dead_reason => 'PERMANENT', queue => 'b' $$, $$ reason = 'PERMANENT' and queue = 'b' $$),
  ($$ dead_reason => 'UNROUTABLE' $$, $$ reason = 'UNROUTABLE' $$),
  ($$ dead_reason => 'UNROUTABLE', handler => 'old' $$, 'false'),
  ($$ until => '2026-01-01 01:00Z' $$, $$ dead_at < '2026-01-01 01:00Z' $$),
  ($$ since => '2026-01-01 01:20Z' $$, $$ dead_at >= '2026-01-01 01:20Z' $$),
  ($$ handler => 'h-1', until => '2026-01-01 01:00Z' $$, $$ handler = 'h-1' and dead_at < '2026-01-01 01:00Z' $$),
  ($$ handler => 'old', since => '2026-01-01 00:10Z' $$, $$ handler = 'old' and dead_at >= '2026-01-01 00:10Z' $$),
  ($$ handler => 'rare', since => '2026-01-01 00:00:02Z', until => '2026-01-01 00:00:04Z' $$,
    $$ handler = 'rare' and dead_at >= '2026-01-01 00:00:02Z' and dead_at < '2026-01-01 00:00:04Z' $$);

select plan(4 * count(*)::integer - 1) from sample;

select rdq.create_queue(q.queue) from unnest('{a,b,c,empty}'::text[]) q (queue);
select pg_temp.create_role('viewer', '{b,c*,empty}');

-- Ten letters a tick of ten seconds, so that some died at one instant. The first five are rare, the first 2,500
-- of an old handler, and of a reason and a class that others have no more.
insert into rdq.task
select
  rdq.uuid_v7(), (array['a', 'b', 'c', 'a', 'a'])[1 + n % 5],
  case when n <= 5 then 'rare' when n <= 2500 then 'old' else 'h-' || n % 2 end,
  null, 'x', 'text/plain', '{}', n, null, null, '2026-01-01Z'
from generate_series(1, 6000) n;

insert into rdq.dead (
  task_id, queue, handler, life, dead_at, reason, error_class, error_type, message, fingerprint, code_version
)
select
  t.id, t.queue, t.handler, 0,
  '2026-01-01Z'::timestamptz + case when handler = 'rare' then max_attempts else max_attempts / 10 * 10 end * interval '1 second',
  case handler when 'rare' then 'UNROUTABLE' when 'old' then 'PERMANENT' else 'EXHAUSTED' end,
  case handler when 'rare' then 'AMBIGUOUS' when 'old' then 'PERMANENT' else case when max_attempts % 7 > 0 then 'TRANSIENT' end end,
  case handler when 'rare' then 'Rare' when 'old' then 'net.Old' || max_attempts % 3 else case when max_attempts % 11 > 0 then 'Error' end end,
  'message',
  case when handler = 'rare' then 'rare' when handler = 'old' and max_attempts % 3 = 1 then 'fp-3' else handler || max_attempts % 5 end,
  'v' || max_attempts / 2000
from rdq.task t;

-- The ids of all pages of a few rows, until one is not full or there are enough.
create function pg_temp.pages(filter text, max_rows integer, pages integer) returns uuid[]
language plpgsql
as $$
declare
  found_ids uuid[] := '{}';
  page_ids uuid[];
  last_page text;
begin
  for i in 1 .. pages loop
    execute format(
      'select array_agg(task_id), (array_agg(page))[count(*)] from rdq.dead_letters(%s after => %L, max_rows => %s)',
      nullif(filter, '') || ',', last_page, max_rows
    ) into page_ids, last_page;
    exit when page_ids is null;
    found_ids := found_ids || page_ids;
    exit when cardinality(page_ids) < max_rows;
  end loop;
  return found_ids;
end
$$;

create function pg_temp.expected(condition text, number integer) returns uuid[]
language plpgsql
as $$
declare
  ids uuid[];
begin
  execute format(
    'select array(select task_id from rdq.dead where %s order by dead_at desc, task_id desc limit %s)', condition, number
  ) into ids;
  return ids;
end
$$;

select is(pg_temp.pages(s.filter, 4, 3), pg_temp.expected(s.condition, 12), 'three small pages:' || s.filter) from sample s;
select is(pg_temp.pages(s.filter, 1000, 9), pg_temp.expected(s.condition, 9000), 'all of them:' || s.filter) from sample s;
select is(
  pg_temp.as_role('rdq_test_viewer', format('select array(select task_id from rdq.dead_letters(%s max_rows => 30))', nullif(s.filter, '') || ',')),
  pg_temp.expected(format('(%s) and queue <> %L', s.condition, 'a'), 30)::text,
  'a viewer of two of the queues:' || s.filter)
from sample s
where s.filter not like '%queue => ''a''%';

-- The same again with every entry of the indexes known to be visible, as after a vacuum.
update pg_class set relallvisible = 1000000 where oid = 'rdq.dead'::regclass;
select is(pg_temp.pages(s.filter, 4, 1), pg_temp.expected(s.condition, 4), 'counted in the index:' || s.filter) from sample s;

select * from finish();
rollback;
