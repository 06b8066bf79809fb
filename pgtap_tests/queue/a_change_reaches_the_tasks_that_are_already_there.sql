begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(12);

select rdq.create_queue('q', '{"max_attempts": 5, "ambiguous_attempts": 5, "jitter": 0, "ladder": ["1 minute"]}');

select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'Timeout', error_class => 'TRANSIENT');
select pg_temp.pass('1 minute');
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'Timeout', error_class => 'TRANSIENT');
select is(pg_temp.status_of(:'id'), 'PENDING', 'two of five attempts are spent');

select rdq.alter_queue('q', '{"max_attempts": 2}');
select pg_temp.pass('1 minute');
select is_empty($$ select * from rdq.claim(array['q'], 'tester') $$, 'a lowered max_attempts: no third attempt');
select is(t.dead_reason, 'EXHAUSTED', 'it is a dead letter now') from rdq.tasks t where t.task_id = :'id';

select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.alter_queue('q', '{"max_attempts": 1}');
select is(f.dead_reason, 'EXHAUSTED', 'lowered while it runs: the failure is the last')
from rdq.fail(:'task_id', :'claim_token', 'Timeout', error_class => 'TRANSIENT') f;

select rdq.alter_queue('q', '{"max_attempts": 2}');
select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.alter_queue('q', '{"max_attempts": 3, "ladder": ["10 minutes"], "error_rules": [{"match": "Time*", "class": "TRANSIENT"}]}');
select is(f.status, 'PENDING', 'a raised one gives more')
from rdq.fail(:'task_id', :'claim_token', 'Timeout') f;
select ok(
  d.due_at between clock_timestamp() + interval '9 minutes 50 seconds' and clock_timestamp() + interval '10 minutes',
  'the new ladder holds') from rdq.due d where d.task_id = :'id';
select is(h.error_class, 'TRANSIENT', 'the new rules classify') from rdq.history(:'id') h;

select pg_temp.pass('10 minutes');
select rdq.alter_queue('q', '{"error_rules": [{"match": "Time*", "class": "PERMANENT"}], "lease": "10 seconds"}');
select claim_token, lease_expires_at - claimed_at as lease, task_id from rdq.claim(array['q'], 'tester') \gset
select is(:'lease'::interval, interval '10 seconds', 'the new lease');
select is(f.dead_reason, 'PERMANENT', 'the new rules decide') from rdq.fail(:'task_id', :'claim_token', 'Timeout') f;

select rdq.alter_queue('q', '{"max_attempts": 1}');
select rdq.submit('q', 'h', 'x', max_attempts => 2) as id \gset
select * from pg_temp.claim_one('q') \gset
select is(f.status, 'PENDING', 'a task''s own max_attempts is before the queue''s')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select pg_temp.pass('1 day');
select rdq.tick();
select is(count(*), 3::bigint, 'dead letters are kept') from rdq.dead_letters(queue => 'q');
select rdq.alter_queue('q', '{"keep_dead": "12 hours"}');
select rdq.tick();
select is(count(*), 0::bigint, 'a retention reaches those that died before it') from rdq.dead_letters(queue => 'q');

select * from finish();
rollback;
