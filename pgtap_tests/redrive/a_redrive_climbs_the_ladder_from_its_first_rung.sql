begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(2);

select rdq.create_queue('q', '{"max_attempts": 2, "jitter": 0, "ladder": ["1 minute", "10 minutes"]}');
select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT');
select pg_temp.pass('1 minute');
select * from pg_temp.claim_one('q') \gset
select is(f.status, 'DEAD', 'it is dead') from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select rdq.redrive(:'id');
select * from pg_temp.claim_one('q') \gset
select ok(
  f.next_attempt_at between clock_timestamp() + interval '55 seconds' and clock_timestamp() + interval '1 minute',
  'one minute again')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select * from finish();
rollback;
