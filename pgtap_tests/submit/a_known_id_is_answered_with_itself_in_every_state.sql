-- A submit whose commit is in doubt is sent again (trouble case H5).
begin;
\ir ../helpers/common.psql
select plan(22);

select rdq.create_queue('q');
select '01890000-0000-7000-8000-000000000001'::uuid as id \gset

create function pg_temp.again(id uuid) returns setof text
language plpgsql
as $$
declare
  before constant text := pg_temp.stored();
  status constant text := pg_temp.status_of(id);
begin
  return next is(rdq.submit('q', 'h', 'x', task_id => id), id, status || ': the same call');
  return next is(
    rdq.submit('q', 'other', 'y', task_id => id, dedupe_key => 'k', run_at => '2999-01-01', max_attempts => 1,
      error => '{"class": "PERMANENT", "message": "m"}'),
    id, status || ': another call with its id');
  return next is(
    array(select rdq.submit_many('q', jsonb_build_array(jsonb_build_object('handler', 'h', 'payload', 'z', 'task_id', id)))),
    array[id], status || ': in submit_many');
  return next is(pg_temp.stored(), before, status || ': changes nothing');
end
$$;

select rdq.submit('q', 'h', 'x', task_id => :'id');
select pg_temp.again(:'id');
select is(count(*), 1::bigint, 'there is one task') from rdq.task;

select * from pg_temp.claim_one('q') \gset
select pg_temp.again(:'id');
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select pg_temp.again(:'id');
select rdq.redrive(:'id');
select pg_temp.again(:'id');
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select pg_temp.again(:'id');

select rdq.purge(:'id');
select rdq.submit('q', 'h', 'x', task_id => :'id');
select is(pg_temp.status_of(:'id'), 'PENDING', 'after a purge the id is new again');

select * from finish();
rollback;
