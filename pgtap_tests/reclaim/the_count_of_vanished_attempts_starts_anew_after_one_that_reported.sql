begin;
select plan(11);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 20, "vanish_limit": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.next(ending text) returns text
language plpgsql
as $$
declare
  held record;
begin
  perform pg_temp.pass('2 days');
  if ending = 'vanish' then
    return pg_temp.vanish_one('q');
  elsif ending = 'fail' then
    return pg_temp.fail_one('q');
  end if;
  select * into held from pg_temp.claim_one('q');
  perform rdq.release(array[held.task_id], array[held.claim_token]);
  return pg_temp.status_of(held.task_id);
end
$$;

select is(pg_temp.next('vanish'), 'PENDING', 'one vanishes');
select is(pg_temp.next('vanish'), 'PENDING', 'two in a row');
select is(pg_temp.next('fail'), 'PENDING', 'one reports a failure');
select is(pg_temp.next('vanish'), 'PENDING', 'one vanishes again');
select is(pg_temp.next('vanish'), 'PENDING', 'two in a row again');
select is(pg_temp.next('release'), 'PENDING', 'one is released, which is a word too');
select is(pg_temp.next('vanish'), 'PENDING', 'one vanishes again');
select is(pg_temp.next('vanish'), 'PENDING', 'two in a row again');
select is(pg_temp.next('vanish'), 'DEAD', 'and three in a row are enough');
select is(dead_reason, 'VANISHED', 'for that reason') from rdq.tasks;

select status from rdq.redrive(:'task');
select is(pg_temp.next('vanish'), 'PENDING', 'a redrive starts anew too');

select * from finish();
rollback;
