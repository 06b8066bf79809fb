begin;
select plan(8);
\ir ../helpers/common.psql

select rdq.create_queue('open');
select rdq.create_queue('shut');
select rdq.submit(queue, 'h', 'x') from unnest('{open,shut}'::text[]) queue, generate_series(1, 3);
select rdq.pause_queue('shut', 'the bank is down');

select is_empty($$ select * from rdq.claim('{shut}', 'tester', 10) $$, 'nothing is claimed from it');
select results_eq(
  $$ select queue, count(*) from rdq.claim('{shut,open}', 'tester', 2) group by queue $$, $$ values ('open', 2::bigint) $$,
  'the others are served, and it takes no share of theirs'
);
select is(queue, 'open', 'a claim from all queues skips it too') from rdq.claim(null, 'tester', 10);
select is(rdq.next_due_at('{shut}'), null, 'a runner does not wait for it');
select is(pg_temp.status_of(rdq.submit('shut', 'h', 'x')), 'PENDING', 'what is submitted to it waits');
select is(count(*), 4::bigint, 'all of it is still there') from rdq.due where queue = 'shut';

select rdq.resume_queue('shut');
select is(count(*), 4::bigint, 'and is claimed when the queue is open again')
from rdq.claim('{shut}', 'tester', 10);
select is(count(*), 7::bigint, 'so that each task was handed out once') from rdq.lease;

select * from finish();
rollback;
