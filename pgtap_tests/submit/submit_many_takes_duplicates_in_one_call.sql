begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');

create temporary table answered as
select row_number() over () as place, a.id
from rdq.submit_many('q', '[
  {"handler": "first", "payload": "1", "dedupe_key": "k"},
  {"handler": "second", "payload": "2", "task_id": "01890000-0000-7000-8000-000000000001"},
  {"handler": "third", "payload": "3", "dedupe_key": "k"},
  {"handler": "fourth", "payload": "4", "task_id": "01890000-0000-7000-8000-000000000001"},
  {"handler": "fifth", "payload": "5", "dedupe_key": "k", "task_id": "01890000-0000-7000-8000-000000000002"},
  {"handler": "sixth", "payload": "6", "dedupe_key": "other"}
]') a (id);

select pg_temp.rows_are(
  $$ select t.handler from answered a join rdq.task t on t.id = a.id order by a.place $$,
  $$ values ('first'), ('second'), ('first'), ('second'), ('first'), ('sixth') $$,
  'the first of equals stands for the others');
select is(count(*), 3::bigint, 'there are three tasks') from rdq.task;
select is(count(*), 3::bigint, 'with one ticket each') from rdq.due;
select is(count(*), 2::bigint, 'and one holder a key') from rdq.dedupe;

select rdq.submit_many('q', '[
  {"handler": "seventh", "payload": "7", "task_id": "01890000-0000-7000-8000-000000000003",
    "error": {"class": "PERMANENT"}},
  {"handler": "eighth", "payload": "8", "task_id": "01890000-0000-7000-8000-000000000003"}
]');
select is(t.handler, 'seventh', 'of two with one id the first holds')
from rdq.task t where t.id = '01890000-0000-7000-8000-000000000003';
select is(pg_temp.status_of('01890000-0000-7000-8000-000000000003'), 'DEAD', 'with its error');

select * from finish();
rollback;
