begin;
select plan(3);

select rdq.create_queue('q', '{"max_attempts": 3, "ladder": ["1 second", "2 seconds"], "keep_dead": "14 days"}');
select to_jsonb(q) as before from rdq.queues q where q.queue = 'q' \gset

select rdq.alter_queue(queue => 'q', settings => '{"lease": "5 minutes"}');
select is(to_jsonb(q), :'before'::jsonb || '{"lease": "00:05:00"}', 'one key')
from rdq.queues q where q.queue = 'q';

select rdq.alter_queue(queue => 'q', settings => '{"ladder": null}');
select is(to_jsonb(q), :'before'::jsonb || '{"lease": "00:05:00", "ladder": null}', 'a null')
from rdq.queues q where q.queue = 'q';

select rdq.pause_queue('q', 'a reason');
select rdq.alter_queue(queue => 'q', settings => '{"max_attempts": 4}');
select is(q.pause_reason, 'a reason', 'a paused queue stays paused') from rdq.queues q where q.queue = 'q';

select * from finish();
rollback;
