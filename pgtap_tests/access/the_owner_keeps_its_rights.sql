begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(4);

select rdq.create_queue('q');
select pg_temp.create_role('admin');
select pg_get_userbyid(n.nspowner) as owner from pg_namespace n where n.nspname = 'rdq' \gset

-- Granted or refused, but not half done.
select ok(pg_temp.as_role('rdq_test_admin', format(s.statement, :'owner')) ~ '^(|RD...)$', s.statement)
from (values ('select rdq.grant_access(%L, ''viewer'')'), ('select rdq.revoke_access(%L, ''viewer'')')) s (statement);

select is(length(pg_temp.as_role('rdq_test_admin', 'select rdq.submit(''q'', ''h'', ''x'')')), 36, 'the functions work');
select is(
  pg_temp.as_role(:'owner', 'select count(*) from rdq.tasks t join rdq.task using (queue)'), '1', 'it reads its tables');

select * from finish();
rollback;
