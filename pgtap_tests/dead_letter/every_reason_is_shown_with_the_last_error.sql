begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(1);

select rdq.create_queue('q',
  '{"max_attempts": 1, "ambiguous_attempts": 1, "vanish_limit": 1, "max_releases": 0, "ladder": ["1 minute"]}');

-- One after the other: each is the only task that can be claimed.
select rdq.submit('q', 'exhausted', 'x');
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'm', error_class => 'TRANSIENT');
select rdq.submit('q', 'permanent', 'x');
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'm', error_class => 'PERMANENT');
select rdq.submit('q', 'ambiguous', 'x', max_attempts => 2);
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'm', error_class => 'AMBIGUOUS');
select rdq.submit('q', 'deadline', 'x', give_up_at => clock_timestamp() + interval '30 seconds', max_attempts => 2);
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'm', error_class => 'TRANSIENT');
select rdq.submit('q', 'vanished', 'x', max_attempts => 2);
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 hour');
select rdq.reclaim();
select rdq.submit('q', 'unroutable', 'x');
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid], 'no such handler');
select rdq.submit('q', 'cancelled', 'x', error => '{"type": "E", "message": "m", "class": "TRANSIENT"}') as id \gset
select rdq.cancel(:'id', 'not needed');

-- What was cancelled while it was held has an attempt more, which says nothing about the cause.
select rdq.submit('q', 'cancelled-in-flight', 'x', error => '{"type": "E", "message": "m", "class": "TRANSIENT"}') as id \gset
select pg_temp.pass('1 hour');
select * from pg_temp.claim_one('q') \gset
select rdq.cancel(:'id');

select pg_temp.rows_are(
  $$
    select handler, dead_reason, error_class, error_type, message is not null
    from rdq.dead_letters
    order by handler collate "C"
  $$,
  $$
    values
      ('ambiguous', 'AMBIGUOUS', 'AMBIGUOUS', 'E', true),
      ('cancelled', 'CANCELLED', 'TRANSIENT', 'E', true),
      ('cancelled-in-flight', 'CANCELLED', 'TRANSIENT', 'E', true),
      ('deadline', 'DEADLINE', 'TRANSIENT', 'E', true),
      ('exhausted', 'EXHAUSTED', 'TRANSIENT', 'E', true),
      ('permanent', 'PERMANENT', 'PERMANENT', 'E', true),
      ('unroutable', 'UNROUTABLE', null, 'RELEASED', true),
      ('vanished', 'VANISHED', null, 'LEASE_EXPIRED', true)
  $$,
  'seven reasons, and the last error that there was');

select * from finish();
rollback;
