begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');

create temporary table answered as
select row_number() over () as place, a.id
from rdq.submit_many('q', '[
  {"handler": "a", "payload": "one"},
  {"handler": "b", "payload": "two", "task_id": "ffffffff-0000-7000-8000-000000000001"},
  {"handler": "c", "payload": "three", "task_id": "00000000-0000-7000-8000-000000000001"},
  {"handler": "d", "payload": "four", "error": {"class": "PERMANENT"}},
  {"handler": "e", "payload": "five", "dedupe_key": "z"},
  {"handler": "f", "payload": "six", "dedupe_key": "a"}
]') a (id);

select pg_temp.rows_are(
  $$ select t.handler from answered a join rdq.task t on t.id = a.id order by a.place $$,
  $$ values ('a'), ('b'), ('c'), ('d'), ('e'), ('f') $$,
  'an id for each item, in their order');

create temporary table again as
select row_number() over () as place, a.id
from rdq.submit_many('q', '[
  {"handler": "x", "payload": "seven"}, {"handler": "x", "payload": "six", "dedupe_key": "a"},
  {"handler": "y", "payload": "two", "task_id": "ffffffff-0000-7000-8000-000000000001"},
  {"handler": "z", "payload": "five", "dedupe_key": "z"}
]') a (id);
select pg_temp.rows_are(
  $$ select t.handler from again a join rdq.task t on t.id = a.id order by a.place $$,
  $$ values ('x'), ('f'), ('b'), ('e') $$,
  'known ids and keys answer in their places');
select is(count(*), 7::bigint, 'one of four was new') from rdq.task;

select is(count(*), 0::bigint, 'an empty array has no answer') from rdq.submit_many('q', '[]');
select is(count(*), 1::bigint, 'jsonb') from rdq.submit_many('q', '[{"handler": "h", "payload": 1}]'::jsonb);
select is(count(*), 1::bigint, 'json') from rdq.submit_many('q', '[{"handler": "h", "payload": 1}]'::json);

select * from finish();
rollback;
