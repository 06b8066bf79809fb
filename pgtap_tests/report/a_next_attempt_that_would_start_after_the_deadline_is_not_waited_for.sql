begin;
select plan(8);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"backoff_base": "10 minutes", "jitter": 0}');

-- The rung ends after the deadline.
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '5 minutes') as task \gset
select is(pg_temp.fail_one('q'), 'DEAD', 'a retry in ten minutes is too late for a deadline in five');
select is(dead_reason, 'DEADLINE', 'and the reason says so') from rdq.tasks where task_id = :'task';
select is(pg_temp.history_of(:'task'), '1 TRANSIENT', 'the failure is in the history');

-- The rung ends before the deadline; what the worker asks to wait does not.
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '15 minutes') as task \gset
select * from pg_temp.claim_one('q') \gset
select is(
  (select row(f.status, f.dead_reason)::text from rdq.fail(:'task_id', :'claim_token', 'Busy', retry_after => '20 minutes') f),
  '(DEAD,DEADLINE)', 'retry_after counts too'
);

-- Both end before it.
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '15 minutes') as task \gset
select is(pg_temp.fail_one('q'), 'PENDING', 'a retry in ten minutes is in time for a deadline in fifteen');
select pg_temp.pass('11 minutes');
select is(pg_temp.fail_one('q'), 'DEAD', 'the next, in twenty, is not');

-- A success counts whenever it comes.
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '5 minutes') as task \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('10 minutes');
select ok(rdq.complete(:'task_id', :'claim_token'), 'an attempt that began in time may end after the deadline');
select is(pg_temp.status_of(:'task'), 'SUCCEEDED', 'and has succeeded');

select * from finish();
rollback;
