begin;
\ir ../helpers/common.psql
select plan(11);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as id \gset

create function pg_temp.refused(id uuid) returns setof text
language plpgsql
as $$
declare
  before constant text := pg_temp.stored();
  state constant text := pg_temp.status_of(id);
  error record;
begin
  error := pg_temp.error_of(format('select rdq.purge(task_id => %L, reason => %L)', id, 'r'));
  return next is(error.code, 'RD004', state || ' is refused');
  return next ok(error.message like '%' || id || '%' || state || '%', 'the message names the task and its state');
  return next ok(error.hint like '%rdq.cancel%', 'the hint says how to end it');
  return next is(pg_temp.stored(), before, 'nothing changed');
end
$$;

select pg_temp.refused(:'id');
select * from pg_temp.claim_one('q') \gset
select pg_temp.refused(:'id');
select rdq.complete(:'task_id', :'claim_token');
select rdq.purge(:'id');

select throws_ok(format('select rdq.purge(%L)', :'id'), 'RD003', null, 'a second time: it does not exist');
select throws_ok(
  $$ select rdq.purge('01890000-0000-7000-8000-000000000001') $$, 'RD003', null, 'a task that never existed');
select throws_ok($$ select rdq.purge(null) $$, 'RD003', null, 'null');

select * from finish();
rollback;
