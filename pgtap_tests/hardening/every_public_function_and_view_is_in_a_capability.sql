begin;
select plan(2);

create role rdq_test_admin;
select rdq.grant_access(role => 'rdq_test_admin', capability => 'admin');

select is_empty(
  $$
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace and p.proname not like '\_%'
      and not has_function_privilege('rdq_test_admin', p.oid, 'execute')
  $$,
  'functions');
select is_empty(
  $$
    select c.oid::regclass
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname not like '\_%'
      and not has_table_privilege('rdq_test_admin', c.oid, 'select')
  $$,
  'views');

select * from finish();
rollback;
