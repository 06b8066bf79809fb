-- The first report stays: it says that the effect probably happened.
begin;
select plan(13);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as task \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 day');
select rdq.reclaim();
select is(pg_temp.history_of(:'task'), '1 LEASE_EXPIRED', 'an attempt vanishes, and the task goes back');

select ok(not rdq.complete(:'task_id', :'claim_token'), 'its completion comes late');
select is(pg_temp.history_of(:'task'), '1 LEASE_EXPIRED (late SUCCEEDED)', 'which is noted');
select ok(late_at between finished_at and clock_timestamp(), 'with the time') from rdq.history(:'task');
select is(pg_temp.status_of(:'task'), 'PENDING', 'and changes nothing else');

select pg_temp.pass('1 hour');
select ok(f.stale, 'a later word') from rdq.fail(:'task_id', :'claim_token', 'Down') f;
select is(pg_temp.history_of(:'task'), '1 LEASE_EXPIRED (late SUCCEEDED)', 'does not replace the first');
select ok(late_at < clock_timestamp() - interval '59 minutes', 'nor its time') from rdq.history(:'task');

-- Each attempt has a note of its own.
select pg_temp.pass('1 day');
select * from pg_temp.claim_one('q') \gset second_
select pg_temp.pass('1 day');
select rdq.reclaim();
select f.status from rdq.fail(:'second_task_id', :'second_claim_token', 'Down') f;
select is(
  pg_temp.history_of(:'task'), '1 LEASE_EXPIRED (late SUCCEEDED), 2 LEASE_EXPIRED (late FAILED)',
  'a second attempt that vanished is noted by itself'
);

-- A release and a batch note too; a heartbeat says nothing about the end.
select pg_temp.pass('1 day');
select * from pg_temp.claim_one('q') \gset third_
select rdq.cancel(:'task');
select is_empty(
  format('select rdq.heartbeat(array[%L]::uuid[], array[%L]::uuid[])', :'third_task_id', :'third_claim_token'),
  'a heartbeat on a lost claim is not answered'
);
select is(late_outcome, null, 'and not noted') from rdq.history(:'task') where attempt_no = 3;
select rdq.release(array[:'third_task_id']::uuid[], array[:'third_claim_token']::uuid[]);
select is(late_outcome, 'RELEASED', 'a release is') from rdq.history(:'task') where attempt_no = 3;

-- Whoever never held it has nothing to say.
select rdq.submit('q', 'h', 'x') as other \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 day');
select rdq.reclaim();
select rdq.complete(:'other', gen_random_uuid());
select is(pg_temp.history_of(:'other'), '1 LEASE_EXPIRED', 'a token that never was is not noted');

select * from finish();
rollback;
