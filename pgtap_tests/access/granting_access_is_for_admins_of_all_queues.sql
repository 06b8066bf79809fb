begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(24);

select rdq.create_queue(q.name) from unnest('{payments.eu,mails}'::text[]) q (name);
create role rdq_test_app;
select pg_temp.create_role('admin');
create role rdq_test_half;
select rdq.grant_access('rdq_test_half', 'admin', '{payments.*}');

select is(
  pg_temp.as_role('rdq_test_admin', 'select rdq.grant_access(''rdq_test_app'', ''viewer'')'), '', 'an admin grants');
select is(pg_temp.as_role('rdq_test_app', 'select count(*) from rdq.queues'), '2', 'and it holds');
select is(
  pg_temp.as_role('rdq_test_admin', 'select rdq.revoke_access(''rdq_test_app'', ''viewer'')'), '', 'an admin revokes');
select is(pg_temp.as_role('rdq_test_app', 'select count(*) from rdq.queues'), '42501', 'and it holds');

select is(pg_temp.as_role('rdq_test_half', s.statement), s.answer, 'an admin of some queues: ' || s.statement)
from (values
  ('select rdq.grant_access(''rdq_test_half'', ''admin'')', 'RD007'),
  ('select rdq.grant_access(''rdq_test_half'', ''admin'', ''{payments.*}'')', 'RD007'),
  ('select rdq.revoke_access(''rdq_test_admin'', ''admin'')', 'RD007'),
  ('select rdq.create_queue(''payments.us'')', ''),
  ('select rdq.create_queue(''mails'')', 'RD007'),
  ('select rdq.alter_queue(''payments.eu'', ''{"max_attempts": 3}'')', ''),
  ('select rdq.drop_queue(''payments.us'')', ''),
  ('select rdq.alter_queue(''mails'', ''{}'')', 'RD007'),
  ('select rdq.drop_queue(''mails'')', 'RD007'),
  ('select rdq.pause_queue(''mails'')', 'RD007'),
  ('select rdq.submit(''mails'', ''h'', ''x'')', 'RD007')
) s (statement, answer);

select is(e.code, s.code, s.statement)
from (values
  ('rdq.grant_access(''rdq_test_none'', ''viewer'')', 'RD003'),
  ('rdq.grant_access(null, ''viewer'')', 'RD003'),
  ('rdq.grant_access(''public'', ''viewer'')', 'RD003'),
  ('rdq.grant_access(''rdq_test_app'', ''king'')', 'RD002'),
  ('rdq.grant_access(''rdq_test_app'', null)', 'RD002'),
  ('rdq.grant_access(''rdq_test_app'', ''viewer'', ''{}'')', 'RD002'),
  ('rdq.grant_access(''rdq_test_app'', ''viewer'', null)', 'RD002'),
  ('rdq.grant_access(''rdq_test_app'', ''viewer'', ''{a,null}'')', 'RD002')
) s (statement, code)
cross join pg_temp.error_of('select ' || s.statement) e;
select ok(
  pg_temp.hint_of('select rdq.grant_access(''rdq_test_app'', ''king'')') like '%operator%',
  'the hint lists the capabilities');

select * from finish();
rollback;
