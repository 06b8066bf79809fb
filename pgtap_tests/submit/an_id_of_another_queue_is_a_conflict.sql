begin;
\ir ../helpers/common.psql
select plan(7);

select rdq.create_queue('q');
select rdq.create_queue('other');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as id \gset
select pg_temp.stored() as before \gset

select unnest(array[
  is(e.code, 'RD005', 'submit'),
  ok(e.message like '%' || :'id' || '%"q"%', 'the message names the id and its queue'),
  ok(e.hint > '', 'a hint says what to do')
])
from pg_temp.error_of(format($$ select rdq.submit('other', 'h', 'x', task_id => %L) $$, :'id')) e;
select throws_ok(
  format($$ select rdq.submit('other', 'h', 'x', task_id => %L, dedupe_key => 'k') $$, :'id'), 'RD005', null,
  'with a key too');

select unnest(array[
  is(e.code, 'RD005', 'submit_many'),
  ok(e.message like '%' || :'id' || '%', 'the message names the id')
])
from pg_temp.error_of(format(
  $$
    select rdq.submit_many('other',
      '[{"handler": "h", "payload": "x"}, {"handler": "h", "payload": "x", "task_id": "%s"}]')
  $$, :'id')) e;
select is(pg_temp.stored(), :'before', 'nothing was stored');

select * from finish();
rollback;
