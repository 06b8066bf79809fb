begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(24);

select rdq.create_queue('q');
select pg_temp.create_role(c.name) from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name);
create role rdq_test_nobody;

select is_empty(
  format($$
    select c.relname, p.privilege
    from pg_class c
    cross join unnest('{select,insert,update,delete,truncate,references,trigger}'::text[]) p (privilege)
    where c.relnamespace = 'rdq'::regnamespace and c.relkind in ('r', 'p')
      and has_table_privilege(%L, c.oid, p.privilege)
  $$, 'rdq_test_' || r.name),
  r.name || ' has no privilege on a table')
from unnest('{producer,worker,viewer,operator,admin,nobody}'::text[]) r (name);
select is_empty(
  format($$
    select c.relname, p.privilege
    from pg_class c
    cross join unnest('{usage,select,update}'::text[]) p (privilege)
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'S'
      and case when c.relkind = 'S' then has_sequence_privilege(%L, c.oid, p.privilege) end
  $$, 'rdq_test_' || r.name),
  r.name || ' has no privilege on a sequence')
from unnest('{producer,worker,viewer,operator,admin,nobody}'::text[]) r (name);
select ok(
  not has_schema_privilege('rdq_test_' || r.name, 'rdq', 'create'), r.name || ' makes nothing in the schema')
from unnest('{producer,worker,viewer,operator,admin,nobody}'::text[]) r (name);

select is(pg_temp.as_role('rdq_test_' || r.name, 'select count(*) from rdq.task'), '42501', r.name || ' is refused')
from unnest('{producer,worker,viewer,operator,admin}'::text[]) r (name);
select is(
  pg_temp.as_role('rdq_test_nobody', 'select rdq.version()'), '42501',
  'who was granted nothing does not see the schema');

select * from finish();
rollback;
