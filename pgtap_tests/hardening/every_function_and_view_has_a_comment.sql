begin;
select plan(2);

select is_empty(
  $$
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace and coalesce(length(obj_description(p.oid, 'pg_proc')), 0) < 10
  $$,
  'functions');
select is_empty(
  $$
    select c.oid::regclass
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind in ('v', 'm')
      and coalesce(length(obj_description(c.oid, 'pg_class')), 0) < 10
  $$,
  'views');

select * from finish();
rollback;
