begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
\ir ../helpers/time.psql
select plan(13);

select rdq.create_queue(q.name, '{"ladder": [0]}') from unnest('{payments.eu,mails}'::text[]) q (name);
select pg_temp.create_role('worker', '{payments.*}');
select rdq.submit(q.name, 'h', 'x') from unnest('{payments.eu,mails}'::text[]) q (name);

select is(
  pg_temp.as_role('rdq_test_worker', 'select count(*) from rdq.claim(null, ''r'', 9)'), '1',
  'of all queues it gets its own');
select is(c.queue, 'payments.eu', 'that one') from rdq.lease c;
select is(pg_temp.as_role('rdq_test_worker', s.statement), 'RD007', s.statement)
from (values
  ('select count(*) from rdq.claim(array[''mails''], ''r'')'),
  ('select count(*) from rdq.claim(array[''payments.eu'', ''mails''], ''r'')'),
  ('select rdq.next_due_at(array[''mails''])'),
  ('select count(*) from rdq.reclaim(10, array[''mails''])'),
  ('select count(*) from rdq.tick(10, array[''mails''])')
) s (statement);
select is(pg_temp.as_role('rdq_test_worker', 'select rdq.next_due_at(null)'), '', 'nothing waits in its queues');
select is(
  pg_temp.as_role('rdq_test_worker', 'select count(*) from rdq.claim(array[''none''], ''r'')'), 'RD007',
  'whether another name is that of a queue is not told');

select count(*) from rdq.claim(array['mails'], 'other');
select rdq.submit(q.name, 'late', 'x', give_up_at => clock_timestamp() + interval '1 minute')
from unnest('{payments.eu,mails}'::text[]) q (name);
select pg_temp.pass('1 hour');
select is(
  pg_temp.as_role('rdq_test_worker', 'select t from rdq.tick() t'), '(1,1,0,0,)', 'a tick serves its own queues');
select set_eq(
  $$ select t.queue, t.status from rdq.tasks t where t.handler = 'h' $$,
  $$ values ('payments.eu', 'PENDING'), ('mails', 'IN_FLIGHT') $$,
  'a lease of another queue is not its concern');
select set_eq(
  $$ select t.queue, t.status from rdq.tasks t where t.handler = 'late' $$,
  $$ values ('payments.eu', 'DEAD'), ('mails', 'PENDING') $$,
  'nor is a deadline');
select is(
  pg_temp.as_role('rdq_test_worker', 'select count(*) from rdq.claim(null, ''r'', 9)'), '1',
  'a claim reclaims for its own queues only');

select * from finish();
rollback;
