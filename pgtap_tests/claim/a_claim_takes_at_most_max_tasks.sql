-- Whatever the planner thinks of the table: its statistics say one row in the queue, where there are many.
begin;
select plan(8);

select rdq.create_queue('a');
select rdq.create_queue('b');
select rdq.submit('a', 'h', 'x');
analyze rdq.due, rdq.task, rdq.attempt, rdq.queue, rdq.lease;
select count(rdq.submit(queue, 'h', 'x')) from unnest('{a,b}'::text[]) queue, generate_series(1, 60);

select is(count(*), 3::bigint, 'three of 61') from rdq.claim('{a}', 'tester', 3);
select is(count(*), 58::bigint, 'the others wait') from rdq.due where queue = 'a';
select is(count(*), 1::bigint, 'one, if nothing is said') from rdq.claim('{a}', 'tester');
select is(count(*), 7::bigint, 'seven of two queues') from rdq.claim('{a,b}', 'tester', 7);
select is(count(*), 1::bigint, 'one of two queues') from rdq.claim('{a,b}', 'tester', 1);
select is(count(*), 1::bigint, 'one of all queues') from rdq.claim(null, 'tester', 1);
select is(count(*), 108::bigint, 'and no more than there are') from rdq.claim('{a,b}', 'tester', 10000);
select is(count(distinct task_id), 121::bigint, 'every task was handed out once') from rdq.lease;

select * from finish();
rollback;
