-- Each batch is a row of the audit: tasks that end one by one do not go one by one.
begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(7);

select rdq.create_queue('long', '{"keep_succeeded": "1 day"}');
select rdq.create_queue('short', '{"keep_succeeded": "1 hour"}');

create function pg_temp.succeed(queue text) returns void
language plpgsql
as $$
begin
  perform rdq.submit(queue, 'h', 'x');
  perform rdq.complete(c.task_id, c.claim_token) from pg_temp.claim_one(queue) c;
end
$$;

select pg_temp.succeed('long');
select pg_temp.pass('50 minutes');
select pg_temp.succeed('long');
select pg_temp.pass('23 hours 55 minutes');
select is(t.purged, 0::bigint, 'the first is 45 minutes over') from rdq.tick(queues => '{long}') t;
select pg_temp.pass('16 minutes');
select is(t.purged, 2::bigint, 'an hour after the first both go') from rdq.tick(queues => '{long}') t;
select pg_temp.rows_are(
  $$ select queue, affected, reason from rdq.audit_log where action = 'retention' $$,
  $$ values ('long', 2::bigint, 'keep_succeeded has passed') $$,
  'in one row of the audit');

select pg_temp.succeed('short');
select pg_temp.pass('1 hour 2 minutes');
select is(t.purged, 0::bigint, 'kept for an hour, it is two minutes over') from rdq.tick(queues => '{short}') t;
select pg_temp.pass('1 minute');
select is(t.purged, 1::bigint, 'a 24th of the hour is over') from rdq.tick(queues => '{short}') t;

-- Dead letters do not wait: they are few, and their retention is somebody's wish.
select rdq.alter_queue('long', '{"keep_dead": "1 day"}');
select pg_temp.write_dead('long', 1);
select pg_temp.pass('23 hours 59 minutes');
select is(t.purged, 0::bigint, 'a dead letter is kept for a day') from rdq.tick() t;
select pg_temp.pass('1 minute');
select is(t.purged, 1::bigint, 'and then goes') from rdq.tick() t;

select * from finish();
rollback;
