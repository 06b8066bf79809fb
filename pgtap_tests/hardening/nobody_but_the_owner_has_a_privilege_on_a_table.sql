begin;
select plan(2);

select is_empty(
  $$
    select c.oid::regclass, a.grantee::regrole, a.privilege_type
    from pg_class c
    cross join lateral aclexplode(c.relacl) a
    where c.relnamespace = 'rdq'::regnamespace and c.relkind in ('r', 'p', 'S') and a.grantee <> c.relowner
    union all
    select c.oid::regclass, a.grantee::regrole, a.privilege_type
    from pg_class c
    join pg_attribute t on t.attrelid = c.oid
    cross join lateral aclexplode(t.attacl) a
    where c.relnamespace = 'rdq'::regnamespace and a.grantee <> c.relowner
  $$,
  'tables, their columns, sequences');
select is_empty(
  $$
    select o.name
    from (
      select c.oid::regclass::text as name, c.relowner as owner from pg_class c where c.relnamespace = 'rdq'::regnamespace
      union all
      select p.oid::regprocedure::text, p.proowner from pg_proc p where p.pronamespace = 'rdq'::regnamespace
    ) o
    where o.owner <> (select n.nspowner from pg_namespace n where n.nspname = 'rdq')
  $$,
  'and one owner has all');

select * from finish();
rollback;
