begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(14);

select rdq.create_queue('q', '{"max_attempts": 3, "jitter": 0, "ladder": ["1 minute"]}');
create temporary view shown as
select
  t.status, t.attempt_count, t.max_attempts, t.redrive_count, t.next_attempt_at is not null as has_next,
  t.lease_expires_at is not null as has_lease, t.runner, t.finished_at is not null as has_finished, t.dead_reason,
  t.last_error_class, t.last_error_type, t.last_message
from rdq.tasks t;

select rdq.submit('q', 'charge', 'x', run_at => '2998-01-01', give_up_at => '2999-01-01', dedupe_key => 'k', handler_version => '7') as id \gset
select pg_temp.rows_are(
  $$
    select task_id, queue, handler, handler_version, next_attempt_at, give_up_at, dedupe_key, created_at <= clock_timestamp()
    from rdq.tasks
  $$,
  format($$
    values (%L::uuid, 'q', 'charge', '7', '2998-01-01'::timestamptz, '2999-01-01'::timestamptz, 'k', true)
  $$, :'id'),
  'what was asked');
select pg_temp.rows_are(
  'select * from shown',
  $$ values ('PENDING', 0::bigint, 3, 0, true, false, null, false, null, null, null, null) $$,
  'PENDING');
select rdq.cancel(:'id');
select rdq.redrive(:'id');

select task_id, claim_token, claimed_at, lease_expires_at
from rdq.claim(array['q'], 'worker 1', lease => '30 seconds') \gset
select pg_temp.rows_are(
  'select * from shown',
  $$ values ('IN_FLIGHT', 1::bigint, 3, 1, false, true, 'worker 1', false, null, null, null, null) $$,
  'IN_FLIGHT, the claim counted');
select is(t.lease_expires_at, :'lease_expires_at', 'until when it is held') from rdq.tasks t;
select rdq.fail(:'task_id', :'claim_token', 'Timeout', 'no answer', error_class => 'TRANSIENT');
select pg_temp.rows_are(
  'select * from shown',
  $$ values ('PENDING', 1::bigint, 3, 1, true, false, null, false, null, 'TRANSIENT', 'Timeout', 'no answer') $$,
  'PENDING after a failure');
select pg_temp.pass('1 minute');
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid]);
select is(t.attempt_count, 1::bigint, 'a release gives the attempt back') from rdq.tasks t;
select is(t.last_error_type, 'Timeout', 'and is no error') from rdq.tasks t;
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'Parse', 'bad', error_class => 'PERMANENT');
select pg_temp.rows_are(
  'select * from shown',
  $$ values ('DEAD', 2::bigint, 3, 1, false, false, null, true, 'PERMANENT', 'PERMANENT', 'Parse', 'bad') $$,
  'DEAD');
select is(t.finished_at, d.dead_at, 'since when') from rdq.tasks t join rdq.dead_letters d using (task_id);

select rdq.redrive(:'id');
select pg_temp.rows_are(
  'select * from shown',
  $$ values ('PENDING', 0::bigint, 3, 2, true, false, null, false, null, 'PERMANENT', 'Parse', 'bad') $$,
  'redriven: nothing spent, the last error is still known');
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select pg_temp.rows_are(
  'select * from shown',
  $$ values ('SUCCEEDED', 1::bigint, 3, 2, false, false, null, true, null, 'PERMANENT', 'Parse', 'bad') $$,
  'SUCCEEDED');
select is(t.finished_at, h.finished_at, 'since when')
from rdq.tasks t
cross join lateral rdq.history(t.task_id) h
where h.outcome = 'SUCCEEDED';

select rdq.submit('q', 'charge', 'x', max_attempts => 9) as id \gset
select is(t.max_attempts, 9, 'a task''s own max_attempts') from rdq.tasks t where t.task_id = :'id';
select rdq.submit('q', 'charge', 'x', error => jsonb_build_object('message', repeat('é', 3000))) as id \gset
select cmp_ok(length(t.last_message), '<=', 200, 'a long message is short here')
from rdq.tasks t
where t.task_id = :'id';

select * from finish();
rollback;
