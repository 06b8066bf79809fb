begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(6);

select rdq.create_queue(q.name) from unnest('{payments.eu,mails}'::text[]) q (name);
select pg_temp.create_role('viewer', '{payments.*}');
select rdq.submit(q.name, 'h', q.name || ' secret', error => '{"class": "PERMANENT"}')
from unnest('{payments.eu,mails}'::text[]) q (name);
select d.task_id as mine from rdq.dead_letters d where d.queue = 'payments.eu' \gset
select d.task_id as foreign from rdq.dead_letters d where d.queue = 'mails' \gset

select is(
  pg_temp.as_role('rdq_test_viewer', 'select array_agg(queue) from rdq.tasks', h.by), '{payments.eu}', 'by ' || h.by)
from unnest('{role,session}'::text[]) h (by);
select is(
  pg_temp.as_role('rdq_test_viewer', format('select rdq.envelope(%L) ->> ''status''', :'mine')), 'DEAD',
  'its envelope');
select is(
  pg_temp.as_role('rdq_test_viewer', format('select rdq.envelope(%L)', :'foreign')), 'RD003',
  'that of another queue does not exist');

-- A function that tells what it is called with, and says that it costs nothing, so that a planner would call it first.
create function public.rdq_test_tell(content text) returns boolean
language plpgsql cost 0.0000001
as $$
begin
  perform set_config('rdq_test.told', current_setting('rdq_test.told', true) || ' ' || content, true);
  return true;
end
$$;
select set_config('rdq_test.told', '', true);
select is(
  pg_temp.as_role('rdq_test_viewer', format('select count(*) from rdq.%I v where public.rdq_test_tell(v.queue)', v.name)), '1',
  'one row of ' || v.name)
from (values ('queues')) v (name);
select pg_temp.as_role('rdq_test_viewer', format('select count(*) from rdq.%I v where public.rdq_test_tell(v.queue)', v.name))
from (values ('tasks'), ('dead_letters'), ('queue_stats'), ('audit_log')) v (name);
select unalike(current_setting('rdq_test.told'), '%mails%', 'a condition sees no row of another queue');

select * from finish();
rollback;
