begin;
select plan(3);

select rdq.create_queue(queue => 'q', settings => '{"max_attempts": 3, "jitter": 0}');
select to_jsonb(q) as before from rdq.queues q where q.queue = 'q' \gset
select rdq.submit('q', 'h', 'x') as id \gset

select rdq.create_queue(queue => 'q');
select is(to_jsonb(q), :'before'::jsonb, 'without settings it changes nothing') from rdq.queues q where q.queue = 'q';

select rdq.create_queue(queue => 'q', settings => '{"jitter": null, "lease": 90}');
select is(to_jsonb(q), :'before'::jsonb || '{"jitter": 0.2, "lease": "00:01:30"}', 'settings are applied')
from rdq.queues q where q.queue = 'q';

select is(t.status, 'PENDING', 'its tasks are still there') from rdq.tasks t where t.task_id = :'id';

select * from finish();
rollback;
