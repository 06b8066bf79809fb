begin;
select plan(4);

select is_empty(
  $$
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace and has_function_privilege('public', p.oid, 'execute')
  $$,
  'no function');
select is_empty(
  $$
    select c.oid::regclass, p.privilege
    from pg_class c
    cross join unnest('{select,insert,update,delete,truncate,references,trigger}'::text[]) p (privilege)
    where c.relnamespace = 'rdq'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
      and has_table_privilege('public', c.oid, p.privilege)
  $$,
  'no table or view');
select is_empty(
  $$
    select c.oid::regclass
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'S'
      and case when c.relkind = 'S' then has_sequence_privilege('public', c.oid, 'usage,select,update') end
  $$,
  'no sequence');
select is_empty(
  $$ select p.privilege from unnest('{usage,create}'::text[]) p (privilege) where has_schema_privilege('public', 'rdq', p.privilege) $$,
  'not the schema');

select * from finish();
rollback;
