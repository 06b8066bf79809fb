begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(24);

select pg_temp.create_role(c.name, '{?,*?,**,q*}') from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name);
create role rdq_test_ada;
insert into rdq.audit (at, actor, action, affected) values (now() - interval '2 years', 'nobody', 'old', 1);

-- The others are stopped by PostgreSQL itself: they may not execute these functions.
select is(
  pg_temp.as_role('rdq_test_' || c.name, a.statement), case c.name when 'admin' then 'RD007' else '42501' end,
  c.name || ': ' || a.statement)
from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name)
cross join (values
  ('select rdq.grant_access(''rdq_test_admin'', ''admin'', ''{*}'')'),
  ('select rdq.grant_access(''rdq_test_ada'', ''viewer'', ''{?}'')'),
  ('select rdq.revoke_access(''rdq_test_admin'', ''admin'')'),
  ('select rdq.purge_audit(''1 year'')')
) a (statement);
select is(pg_temp.as_role('rdq_test_admin', 'select rdq.create_queue(''q'')'), '', 'it creates a queue of its own');
select is(pg_temp.as_role('rdq_test_admin', 'select count(*) from rdq.audit_log where action = ''grant_access'''), '0', 'what is of all queues it does not see');
select rdq.grant_access('rdq_test_admin', 'admin', '{*}');
select is(pg_temp.as_role('rdq_test_admin', 'select rdq.grant_access(''rdq_test_ada'', ''viewer'', ''{?}'')'), '', 'one of all queues may');
select is(pg_temp.as_role('rdq_test_admin', 'select rdq.purge_audit(''1 year'')'), '1', 'all of it');

select * from finish();
rollback;
