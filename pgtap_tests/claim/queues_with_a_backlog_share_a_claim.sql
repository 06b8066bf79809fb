begin;
select plan(7);

select rdq.create_queue('q' || n) from generate_series(1, 3) n;
-- The first queue is the oldest and by far the fullest.
select count(rdq.submit('q1', 'h', 'x')) from generate_series(1, 200);
select count(rdq.submit('q2', 'h', 'x')) from generate_series(1, 50);
select count(rdq.submit('q3', 'h', 'x')) from generate_series(1, 2);

select results_eq(
  $$ select queue, count(*) from rdq.claim('{q1,q2}', 'tester', 10) group by queue order by queue $$,
  $$ values ('q1', 5::bigint), ('q2', 5) $$,
  'two queues have half of ten each'
);
select results_eq(
  $$ select queue, count(*) from rdq.claim('{q2,q1}', 'tester', 10) group by queue order by queue $$,
  $$ values ('q1', 5::bigint), ('q2', 5) $$,
  'in whatever order they are named'
);
create temp table three as select queue, count(*) as size from rdq.claim(null, 'tester', 12) group by queue;
select is(size, 2::bigint, 'a queue with two of twelve gives both') from three where queue = 'q3';
select cmp_ok(size, '>=', 4::bigint, 'and the others fill the rest') from three where queue = 'q1';
select is(sum(size), 12::numeric, 'so that none of the twelve is left out') from three;
select results_eq(
  $$ select queue, count(*) from rdq.claim('{q1,q3}', 'tester', 10) group by queue $$,
  $$ values ('q1', 10::bigint) $$,
  'an empty queue takes no share'
);
select is(count(distinct queue), 2::bigint, 'two of two queues') from rdq.claim('{q1,q2}', 'tester', 2);

select * from finish();
rollback;
