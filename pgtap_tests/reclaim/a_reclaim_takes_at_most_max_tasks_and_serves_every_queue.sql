begin;
select plan(8);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q' || n) from generate_series(1, 3) n;
select count(rdq.submit(queue, 'h', 'x')) from unnest('{q1,q2,q3}'::text[]) queue, generate_series(1, 40);
select count(*) from rdq.claim('{q1,q2,q3}', 'tester', 120);
select pg_temp.pass('1 day');

select is(count(*), 10::bigint, 'ten of 120') from rdq.reclaim(10, '{q1}');
select is(count(*), 110::bigint, 'the others stay') from rdq.lease;
select is(count(*), 30::bigint, 'all that are left in a queue') from rdq.reclaim(100, '{q1}');
select is(count(*), 0::bigint, 'none where none has expired') from rdq.reclaim(100, '{q1}');

-- A queue in which much expires does not keep the others waiting.
create temp table taken as
select t.queue from rdq.reclaim(20, '{q2,q3}') r join rdq.task t on t.id = r.task_id;
select is(count(*), 20::bigint, 'twenty of two queues') from taken;
select is(count(distinct queue), 2::bigint, 'are from both') from taken;
select is(count(*), 60::bigint, 'the rest') from rdq.reclaim(10000);
select is(count(*), 0::bigint, 'leaves no lease') from rdq.lease;

select * from finish();
rollback;
