begin;
\ir ../helpers/common.psql
select plan(3);

select rdq.create_queue('q');
create temporary table answered as
select row_number() over () as place, a.id
from rdq.submit_many('q', '[
  {"handler": "first", "payload": "1", "dedupe_key": "k", "error": {"class": "PERMANENT"}},
  {"handler": "second", "payload": "2", "dedupe_key": "k"},
  {"handler": "third", "payload": "3", "dedupe_key": "k"}
]') a (id);

select pg_temp.rows_are(
  $$ select t.handler, t.status from answered a join rdq.tasks t on t.task_id = a.id order by a.place $$,
  $$ values ('first', 'DEAD'), ('second', 'PENDING'), ('second', 'PENDING') $$,
  'the second is new, the third joins it');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), a.id, 'and so does the next call') from answered a where a.place = 2;
select is(count(*), 2::bigint, 'there are two tasks') from rdq.task;

select * from finish();
rollback;
