begin;
\ir ../helpers/common.psql
select plan(8);

select rdq.create_queue('q');
select '01890000-0000-7000-8000-000000000001'::uuid as id \gset
select rdq.submit('q', 'h', 'x', dedupe_key => 'k', task_id => :'id');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k', task_id => :'id'), :'id', 'the same id with the same key');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'other', task_id => :'id'), :'id', 'the same id with another key');
select is(rdq.submit('q', 'h', 'x', task_id => :'id'), :'id', 'the same id without a key');

select rdq.submit('q', 'h', 'y', dedupe_key => 'other') as other \gset
select isnt(:'other'::uuid, :'id', 'the other key was not taken by that');
select is(
  rdq.submit('q', 'h', 'x', dedupe_key => 'other', task_id => :'id'), :'id',
  'the same id with the key of another task is still that task');

select rdq.cancel(:'id');
select rdq.submit('q', 'h', 'z', dedupe_key => 'k') as twin \gset
select is(
  rdq.submit('q', 'h', 'x', dedupe_key => 'k', task_id => :'id'), :'id', 'a dead one too, while a twin has its key');
select is(pg_temp.status_of(:'id'), 'DEAD', 'and it stays dead');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'twin', 'the twin keeps the key');

select * from finish();
rollback;
