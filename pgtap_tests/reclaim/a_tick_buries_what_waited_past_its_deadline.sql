-- Also where nobody claims: in a paused queue, and long before the task would be due.
begin;
select plan(8);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.create_queue('paused');
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '1 hour') as late \gset
select rdq.submit('paused', 'h', 'x', give_up_at => clock_timestamp() + interval '1 hour') as shut \gset
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '3 hours') as early \gset
select rdq.submit('q', 'h', 'x') as endless \gset
select rdq.pause_queue('paused');

select is(given_up, 0::bigint, 'before the deadline there is nothing to give up') from rdq.tick();
select pg_temp.pass('2 hours');
select is(given_up, 1::bigint, 'a step buries no more than it may') from rdq.tick(1);
select is(given_up, 1::bigint, 'the next one the next') from rdq.tick(1);
select is(row(status, dead_reason)::text, '(DEAD,DEADLINE)', 'the waiting one is dead')
from rdq.tasks
where task_id = :'late';
select is(row(status, dead_reason)::text, '(DEAD,DEADLINE)', 'the one in the paused queue too')
from rdq.tasks
where task_id = :'shut';
select is(pg_temp.status_of(:'early'), 'PENDING', 'a later deadline holds');
select is(pg_temp.status_of(:'endless'), 'PENDING', 'and no deadline is none');
select is(given_up, 0::bigint, 'there is nothing left to give up') from rdq.tick();

select * from finish();
rollback;
