begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(8);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as id \gset
select rdq.pause_queue(queue => 'q', reason => 'the bank is down');
select ok(q.paused_at <= clock_timestamp(), 'since when') from rdq.queues q where q.queue = 'q';
select is(q.pause_reason, 'the bank is down', 'why') from rdq.queues q where q.queue = 'q';

select pg_temp.pass('1 hour');
select q.paused_at from rdq.queues q where q.queue = 'q' \gset
select rdq.pause_queue(queue => 'q', reason => 'still down');
select is(q.paused_at, :'paused_at', 'a second pause keeps the time') from rdq.queues q where q.queue = 'q';
select is(q.pause_reason, 'still down', 'and has its own reason') from rdq.queues q where q.queue = 'q';

select lives_ok($$ select rdq.submit('q', 'h', 'x') $$, 'submits are taken');
select is_empty($$ select * from rdq.claim(array['q'], 'tester') $$, 'nothing is claimed');

select rdq.resume_queue(queue => 'q');
select is(array[q.paused_at::text, q.pause_reason], array[null, null]::text[], 'resumed')
from rdq.queues q where q.queue = 'q';
select is(count(*), 2::bigint, 'and claimed again') from rdq.claim(array['q'], 'tester', max_tasks => 9);

select * from finish();
rollback;
