begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(6);

select rdq.create_queue(q.name) from unnest('{payments.eu,payments.us,mails}'::text[]) q (name);
select pg_temp.create_role('viewer', '{payments.*}');
create role rdq_test_mailer;
select rdq.grant_access('rdq_test_mailer', 'worker', '{mails}');
create role rdq_test_payer;
select rdq.grant_access('rdq_test_payer', 'worker', '{payments.*}');

create function pg_temp.seen() returns text
language sql
begin atomic
  select pg_temp.as_role('rdq_test_viewer', 'select string_agg(r.runner || '' '' || r.queues::text, '' '' order by r.runner) from rdq.runners r');
end;

select rdq.runner_seen('ours', 'host', '1', queues => '{payments.eu}');
select is(pg_temp.seen(), 'ours {payments.eu}', 'a runner of one of them');
select rdq.runner_seen('theirs', 'host', '1', queues => '{mails}');
select is(pg_temp.seen(), 'ours {payments.eu}', 'not one of another queue');
select rdq.runner_seen('ours', 'host', '1', queues => '{payments.eu,mails,payments.us}');
select is(pg_temp.seen(), 'ours {payments.eu,payments.us}', 'of one that works on others too those are not told');

-- "All queues" are those in which the runner may work.
select pg_temp.as_role('rdq_test_mailer', 'select rdq.runner_seen(''any'', ''host'', ''1'')');
select is(pg_temp.seen(), 'ours {payments.eu,payments.us}', 'one of any queue that it may work in: none of ours');
select pg_temp.as_role('rdq_test_payer', 'select rdq.runner_seen(''all'', ''host'', ''1'')');
select is(pg_temp.seen(), 'all {payments.eu,payments.us} ours {payments.eu,payments.us}', 'these are ours');
select rdq.runner_seen('every', 'host', '1');
select is(
  pg_temp.as_role('rdq_test_viewer', 'select count(*) from rdq.runners r where r.runner = ''every'' and r.queues is null'), '1',
  'one that may work everywhere');

select * from finish();
rollback;
