begin;
\ir ../helpers/common.psql
select plan(10);

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
  error := pg_temp.error_of(format('select rdq.cancel(task_id => %L, reason => %L)', id, 'r'));
  return next is(error.code, 'RD004', state || ' is refused');
  return next ok(error.message like '%' || id || '%' || state || '%', 'the message names the task and its state');
  return next ok(error.hint > '', 'a hint says what can be cancelled');
  return next is(pg_temp.stored(), before, 'nothing changed');
end
$$;

select rdq.cancel(:'id');
select pg_temp.refused(:'id');
select rdq.redrive(:'id');
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select pg_temp.refused(:'id');

select throws_ok(
  $$ select rdq.cancel('01890000-0000-7000-8000-000000000001') $$, 'RD003', null, 'a task that does not exist');
select throws_ok($$ select rdq.cancel(null) $$, 'RD003', null, 'null');

select * from finish();
rollback;
