-- Trouble case F1: for each state of the task that has the key, a new submit with it joins, or is new.
begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(29);

select rdq.create_queue('q', '{"ladder": ["1 hour"], "jitter": 0, "vanish_limit": 1}');

-- The answer, in the state that its holder has, and then once more: a new one has the key at once.
create function pg_temp.joins(key text, holder uuid, state text) returns setof text
language plpgsql
as $$
declare
  first constant uuid := rdq.submit('q', 'h', 'another', dedupe_key => key);
begin
  return next is(first, holder, state || ': joins');
  return next is(rdq.submit('q', 'h', 'another', dedupe_key => key), holder, state || ': joins again');
end
$$;

create function pg_temp.is_new(key text, holder uuid, state text) returns setof text
language plpgsql
as $$
declare
  first constant uuid := rdq.submit('q', 'h', 'another', dedupe_key => key, run_at => '2999-01-01');
begin
  return next isnt(first, holder, state || ': is new');
  return next is(pg_temp.status_of(first), 'PENDING', state || ': and waits');
  return next is(rdq.submit('q', 'h', 'another', dedupe_key => key), first, state || ': and has the key now');
end
$$;

select rdq.submit('q', 'h', 'x', dedupe_key => 'k', run_at => '2998-01-01') as id \gset
select pg_temp.joins('k', :'id', 'PENDING, for later');
select rdq.cancel(:'id');
select pg_temp.is_new('k', :'id', 'DEAD, CANCELLED');

select rdq.submit('q', 'h', 'x', dedupe_key => 'a') as id \gset
select pg_temp.joins('a', :'id', 'PENDING, due');
select * from pg_temp.claim_one('q') \gset
select pg_temp.joins('a', :'id', 'IN_FLIGHT');
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT');
select pg_temp.joins('a', :'id', 'PENDING, between attempts');
select pg_temp.pass('1 hour');
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid], 'shutdown');
select pg_temp.joins('a', :'id', 'PENDING, released');
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select pg_temp.is_new('a', :'id', 'SUCCEEDED');

select rdq.submit('q', 'h', 'x', dedupe_key => 'b') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select pg_temp.is_new('b', :'id', 'DEAD, PERMANENT');

select rdq.submit('q', 'h', 'x', dedupe_key => 'c') as id \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 hour');
select pg_temp.joins('c', :'id', 'IN_FLIGHT, its lease expired');
select rdq.reclaim();
select pg_temp.is_new('c', :'id', 'DEAD, VANISHED');

select rdq.submit('q', 'h', 'x', dedupe_key => 'd', give_up_at => clock_timestamp() + interval '1 minute') as id \gset
select pg_temp.pass('1 hour');
select pg_temp.is_new('d', :'id', 'PENDING, past its deadline');
select is(t.dead_reason, 'DEADLINE', 'which is dead then') from rdq.tasks t where t.task_id = :'id';

select rdq.submit('q', 'h', 'x', dedupe_key => 'e', error => '{"class": "PERMANENT"}') as id \gset
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'e', run_at => '2999-01-01') = :'id', false, 'DEAD at once: is new');

select * from finish();
rollback;
