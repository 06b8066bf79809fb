begin;
select plan(9);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q', '{"lease": "10 minutes"}');
select rdq.submit('q', 'h', 'x') as task \gset
select * from pg_temp.claim_one('q') \gset

-- In whole minutes, of which the last one has begun.
create function pg_temp.remaining() returns interval
language sql
begin atomic
  select make_interval(mins => ceil(extract(epoch from l.expires_at - clock_timestamp()) / 60)::integer) from rdq.lease l;
end;

select pg_temp.pass('4 minutes');
select is(pg_temp.remaining(), interval '6 minutes', 'of a lease of ten minutes six are left after four');
select is(
  rdq.heartbeat(array[:'task_id']::uuid[], array[:'claim_token']::uuid[], '2 minutes'), :'task_id',
  'a heartbeat for two'
);
select is(pg_temp.remaining(), interval '6 minutes', 'takes nothing away');
select is(
  rdq.heartbeat(array[:'task_id']::uuid[], array[:'claim_token']::uuid[], '20 minutes'), :'task_id', 'one for twenty'
);
select is(pg_temp.remaining(), interval '20 minutes', 'makes it twenty');
select pg_temp.pass('15 minutes');
select is(rdq.heartbeat(array[:'task_id']::uuid[], array[:'claim_token']::uuid[]), :'task_id', 'one without a lease');
select is(pg_temp.remaining(), interval '10 minutes', 'is for the lease of the queue');
select pg_temp.pass('1 hour');
select is(
  rdq.heartbeat(array[:'task_id']::uuid[], array[:'claim_token']::uuid[]), :'task_id',
  'after the end, and nobody has taken the task'
);
select is(pg_temp.remaining(), interval '10 minutes', 'it is from now');

select * from finish();
rollback;
