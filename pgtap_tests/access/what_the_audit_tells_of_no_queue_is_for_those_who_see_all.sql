begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(9);

select rdq.create_queue(q.name) from unnest('{payments.eu,mails}'::text[]) q (name);
create role rdq_test_all;
select rdq.grant_access('rdq_test_all', 'viewer');
create role rdq_test_mailer;
select rdq.grant_access('rdq_test_mailer', 'operator', '{mails}');
select pg_temp.create_role('operator', '{payments.*}');
select pg_temp.write_dead(q.name, 1) from unnest('{payments.eu,mails}'::text[]) q (name);

create function pg_temp.seen(role text, action text) returns text
language sql
begin atomic
  select pg_temp.as_role(role, format('select count(*) from rdq.audit_log where action = %L', action));
end;

select is(pg_temp.seen('rdq_test_all', 'grant_access'), '3', 'who sees all queues sees who was granted what');
select is(pg_temp.seen('rdq_test_operator', 'grant_access'), '0', 'others do not');

select pg_temp.as_role('rdq_test_operator', 'select rdq.redrive_where(since => ''-infinity'', reason => ''r'')');
select is(pg_temp.seen('rdq_test_operator', 'redrive_where'), '1', 'a bulk redrive of whatever its maker may: its maker');
select is(pg_temp.seen('rdq_test_all', 'redrive_where'), '1', 'and who sees all');
select is(pg_temp.seen('rdq_test_mailer', 'redrive_where'), '0', 'not who sees others');

select rdq.redrive_where(since => '-infinity', reason => 'r');
select is(pg_temp.seen('rdq_test_operator', 'redrive_where'), '1', 'that of the owner found nothing more in it');
select is(pg_temp.seen('rdq_test_mailer', 'redrive_where'), '1', 'what it found in a queue is told there');
select rdq.redrive_where(queue => 'mails', reason => 'r');
select is(pg_temp.seen('rdq_test_mailer', 'redrive_where'), '2', 'one of a queue: who sees the queue');

insert into rdq.audit (at, actor, action, affected) values (now() - interval '2 years', 'nobody', 'old', 1);
select rdq.purge_audit('1 year');
select is(
  array(select pg_temp.seen(r.name, 'purge_audit') from unnest('{rdq_test_all,rdq_test_operator}'::text[]) r (name)),
  '{1,0}', 'what went from the audit');

select * from finish();
rollback;
