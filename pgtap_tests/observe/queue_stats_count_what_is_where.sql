begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(3);

select rdq.create_queue(q.name) from unnest('{empty,q}'::text[]) q (name);
select rdq.submit('q', 'h', 'held') from generate_series(1, 3);
select rdq.complete(c.task_id, c.claim_token) from rdq.claim(array['q'], 'tester') c;
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1, lease => '10 minutes');
select pg_temp.write_dead('q', 2);
select pg_temp.pass('20 minutes');
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1, lease => '1 hour');
select rdq.cancel(t.task_id) from rdq.tasks t where t.status = 'PENDING';
select rdq.submit('q', 'h', 'x', lease.id) from (select null::jsonb as id) lease;
select pg_temp.pass('5 minutes');
select rdq.submit('q', 'h', 'x');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01') from generate_series(1, 4);
select rdq.submit('q', 'h', 'held') from generate_series(1, 1);
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1, lease => '1 second');
select rdq.pause_queue('q');

select results_eq(
  $$ select paused, due, scheduled, in_flight, expired, dead from rdq.queue_stats where queue = 'empty' $$,
  $$ values (false, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint) $$,
  'an empty queue');
select pg_temp.pass('10 seconds');
select results_eq(
  $$ select paused, due, scheduled, in_flight, expired, dead from rdq.queue_stats where queue = 'q' $$,
  $$ values (true, 2::bigint, 4::bigint, 2::bigint, 1::bigint, 3::bigint) $$,
  'a queue with some of each');
select ok(
  s.oldest_due_age between '10 seconds' and '20 seconds' and s.oldest_dead_age between '25 minutes' and '26 minutes',
  'how old the oldest are: ' || s.oldest_due_age || ', ' || s.oldest_dead_age)
from rdq.queue_stats s where s.queue = 'q';

select * from finish();
rollback;
