begin;
select plan(1);

select is_empty(
  $$
    select c.oid::regclass
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname not like '\_%'
      and not coalesce(c.reloptions, '{}') @> '{security_barrier=true}'
  $$,
  'a condition of the reader''s is asked after that of access');

select * from finish();
rollback;
