begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
\ir ../helpers/time.psql
\ir ../helpers/roles.psql

-- Each queue has every trouble.
select rdq.create_queue(q.name, '{"keep_succeeded": "1 day"}') from unnest('{payments.eu,mails,mails.paused,mails.gone}'::text[]) q (name);
select rdq.submit(q.name, 'h', 'x') from unnest('{payments.eu,mails}'::text[]) q (name);
select rdq.complete(c.task_id, c.claim_token) from rdq.claim(null, 'r of mails', 10) c;
select rdq.submit(q.name, 'h', 'x') from unnest('{payments.eu,mails,mails.paused,mails.gone}'::text[]) q (name) cross join generate_series(1, 2);
select count(*) from rdq.claim('{payments.eu,mails}', 'r of mails', 2, lease => '1 minute');
select pg_temp.write_dead(q.name, 3) from unnest('{payments.eu,mails}'::text[]) q (name);
select rdq.pause_queue('mails.paused', 'the mails are down');
select rdq.pause_redrive(r.redrive_id, 'the mails are down') from rdq.redrive_where(queue => 'mails', per_second => 0.001) r;
select pg_temp.pass('2 days');
select rdq.set_endpoint('mails.gone', 'h', 'https://example.org/');
delete from rdq.queue q where q.queue = 'mails.gone';
delete from rdq.task t where t.id = (select d.task_id from rdq.dead d where d.queue = 'mails' limit 1);
delete from rdq.due d where d.task_id = (select d.task_id from rdq.due d where d.queue = 'mails' limit 1);
insert into rdq.lease (task_id, claim_token, queue, life, runner, claimed_at, expires_at)
select d.task_id, gen_random_uuid(), d.queue, 0, 'r', clock_timestamp(), '2999-01-01'
from (select d.* from rdq.dead d join rdq.task t on t.id = d.task_id where d.queue = 'mails' limit 1) d;
select rdq.runner_seen('r of mails', 'host', '99.0.0', 'v1', '{mails}');
select rdq.runner_seen('r2 of mails', 'host', '99.0.0', 'v2', '{mails}');
grant execute on function rdq.version() to public;
set local default_transaction_isolation = 'serializable';

select pg_temp.create_role('viewer', '{payments.*}');
create role rdq_test_nothing;
select rdq.grant_access('rdq_test_nothing', 'viewer', '{nothing}');
create role rdq_test_everything;
select rdq.grant_access('rdq_test_everything', 'viewer');

select plan(8);
select is(
  pg_temp.as_role('rdq_test_viewer', 'select bool_or(d::text ~ ''mails'') from rdq.doctor(deep => true) d', a.by), 'false',
  'nothing of another queue, by ' || a.by)
from unnest('{role,session}'::text[]) a (by);
select is(
  pg_temp.as_role('rdq_test_viewer', 'select array_agg(distinct d.subject order by d.subject) from rdq.doctor(deep => true) d'),
  '{payments.eu,"setting default_transaction_isolation"}', 'its own, and the server''s');
select is(
  pg_temp.as_role('rdq_test_viewer', 'select count(*) from rdq.doctor() d where d.subject = ''payments.eu'''), '4', 'all of its own');
select is(
  pg_temp.as_role('rdq_test_nothing', 'select array_agg(distinct d.subject) from rdq.doctor(deep => true) d'),
  '{"setting default_transaction_isolation"}', 'with queues that are not there only the server''s');
select is(
  pg_temp.as_role('rdq_test_everything', 'select string_agg(d::text, '','' order by d::text) from rdq.doctor(deep => true) d'),
  (select string_agg(d::text, ',' order by d::text) from rdq.doctor(deep => true) d), 'who sees every queue is told what the owner is');
select cmp_ok(count(*), '>', 15::bigint, 'which is a lot') from rdq.doctor(deep => true);
select is(
  pg_temp.as_role('rdq_test_viewer', 'select count(*) from rdq._doctor_access()'), '42501', 'the parts are not for calling');

select * from finish();
rollback;
