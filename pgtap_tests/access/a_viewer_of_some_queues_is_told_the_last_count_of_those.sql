begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
\ir ../helpers/stats.psql
select plan(6);

select pg_temp.counting_is('0');
select rdq.create_queue(q.name) from unnest('{payments.eu,mails}'::text[]) q (name);
select rdq.submit(q.name, 'h', 'x') from unnest('{payments.eu,mails}'::text[]) q (name);
select pg_temp.create_role('viewer', '{payments.*}');
create role rdq_test_nobody;

select is(
  pg_temp.as_role('rdq_test_viewer', 'select array_agg(queue) from rdq.recent_queue_stats()', h.by), '{payments.eu}',
  'counted just now, by ' || h.by)
from unnest('{role,session}'::text[]) h (by);
select pg_temp.as_role('rdq_test_viewer', 'select rdq.refresh_queue_stats()');
select is(jsonb_array_length(c.counts), 2, 'all queues are counted, whoever asks for it') from rdq.queue_count c;
update rdq.queue_count set took = '1 hour';
select rdq.submit(q.name, 'h', 'x') from unnest('{payments.eu,mails}'::text[]) q (name);
select is(
  pg_temp.as_role('rdq_test_viewer', 'select array_agg(queue || due) from rdq.recent_queue_stats()', h.by), '{payments.eu1}',
  'stored, by ' || h.by)
from unnest('{role,session}'::text[]) h (by);
select is(
  pg_temp.as_role('rdq_test_nobody', 'select count(*) from rdq.recent_queue_stats()'), '42501', 'who may not look is refused');

select * from finish();
rollback;
