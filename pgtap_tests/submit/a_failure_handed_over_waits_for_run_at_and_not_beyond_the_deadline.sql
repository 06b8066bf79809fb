begin;
\ir ../helpers/common.psql
select plan(4);

select rdq.create_queue('q', '{"jitter": 0, "ladder": ["10 minutes"]}');

select clock_timestamp() + interval '1 hour' as later \gset
select rdq.submit('q', 'h', 'x', error => '{"class": "TRANSIENT"}', run_at => :'later') as id \gset
select is(t.next_attempt_at, :'later', 'run_at is later than the rung') from rdq.tasks t where t.task_id = :'id';

select rdq.submit('q', 'h', 'x', error => '{"class": "TRANSIENT"}', run_at => clock_timestamp() + interval '1 minute') as id \gset
select ok(t.next_attempt_at > clock_timestamp() + interval '9 minutes', 'the rung is later than run_at')
from rdq.tasks t where t.task_id = :'id';

select rdq.submit('q', 'h', 'x', error => '{"class": "TRANSIENT"}', give_up_at => clock_timestamp() + interval '5 minutes') as id \gset
select is(t.dead_reason, 'DEADLINE', 'the rung is later than the deadline: dead')
from rdq.tasks t
where t.task_id = :'id';
select is(t.attempt_count, 0::bigint, 'with nothing spent') from rdq.tasks t where t.task_id = :'id';

select * from finish();
rollback;
