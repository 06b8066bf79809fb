begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(21);

select rdq.create_queue(q.name) from unnest('{a,b}'::text[]) q (name);
create role rdq_test_alice;
select rdq.grant_access('rdq_test_alice', 'worker', '{a}');
create role rdq_test_bob;
select rdq.grant_access('rdq_test_bob', 'worker', '{b}');
create function pg_temp.entries() returns text
language sql
return (select string_agg(format('%s %s %s', r.runner, r.code_version, r.queues), ', ' order by r.runner) from rdq.runners r);

select is(pg_temp.as_role('rdq_test_bob', 'select rdq.runner_seen(''prod-b'', ''h'', ''1'', ''v1'', ''{b}'')'), '', 'its own entry');
select is(pg_temp.as_role('rdq_test_alice', 'select rdq.runner_gone(''prod-b'')'), '', 'another one may say that it is gone');
select is(pg_temp.entries(), 'prod-b v1 {b}', 'to no effect');
select pg_temp.create_role(c.name) from unnest('{producer,viewer,operator,admin}'::text[]) c (name);
select is(
  pg_temp.as_role('rdq_test_' || c.name, a.statement), case when c.name <> 'admin' then '42501' else a.of_admin end,
  c.name || ': ' || a.statement)
from unnest('{producer,viewer,operator,admin}'::text[]) c (name)
cross join (values
  ('select rdq.runner_gone(''prod-b'')', ''),
  ('select rdq.runner_seen(''prod-b'', ''h'', ''1'', ''v9'', ''{b}'')', 'RD007')
) a (statement, of_admin);
select is(pg_temp.entries(), 'prod-b v1 {b}', 'nor has a role of another capability any');
select is(pg_temp.as_role('rdq_test_alice', 'select rdq.runner_seen(''prod-b'', ''h'', ''1'', ''v9'', ''{a}'')'), 'RD007', 'and may not take it over');
select is(pg_temp.as_role('rdq_test_alice', 'select rdq.runner_seen(''mine'', ''h'', ''1'', ''v9'', ''{a,b,none}'')'), '', 'of the queues in an entry');
select is(pg_temp.entries(), 'mine v9 {a}, prod-b v1 {b}', 'those are kept in which the role may work');
select is(
  pg_temp.as_role('rdq_test_alice', 'select rdq.runner_seen(''mine'', ''h'', ''1'', ''v9'', array(select ''q'' || n from generate_series(1, 100000) n))'),
  '', 'a hundred thousand names');
select is(pg_temp.entries(), 'mine v9 {}, prod-b v1 {b}', 'are none');

update rdq.runner set seen_at = seen_at - interval '31 seconds';
select is(pg_temp.as_role('rdq_test_alice', 'select rdq.runner_seen(''prod-b'', ''h'', ''1'', ''v2'', ''{a}'')'), '', 'a name that nobody lives under can be taken');
select is(pg_temp.as_role('rdq_test_bob', 'select rdq.runner_gone(''mine'')'), '', 'and one that is not alive be removed');
select is(pg_temp.entries(), 'prod-b v2 {a}', 'by anybody');
select rdq.runner_gone('prod-b');
select is(pg_temp.entries(), null, 'and by the owner at any time');

select * from finish();
rollback;
