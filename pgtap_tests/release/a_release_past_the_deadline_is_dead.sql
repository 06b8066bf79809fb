begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '1 hour') as task \gset

select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id']::uuid[], array[:'claim_token']::uuid[], delay => '30 minutes');
select is(pg_temp.status_of(:'task'), 'PENDING', 'a delay within the deadline is waited for');
select pg_temp.pass('30 minutes');
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id']::uuid[], array[:'claim_token']::uuid[], delay => '45 minutes');
select is(row(status, dead_reason)::text, '(DEAD,DEADLINE)', 'one beyond it is not') from rdq.tasks;

select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '1 hour') as task \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('2 hours');
select rdq.release(array[:'task_id']::uuid[], array[:'claim_token']::uuid[]);
select is(row(status, dead_reason)::text, '(DEAD,DEADLINE)', 'nor is anything after it')
from rdq.tasks
where task_id = :'task';
select is(count(*), 2::bigint, 'both are dead letters') from rdq.dead_letters;

select * from finish();
rollback;
