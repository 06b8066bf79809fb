-- With an empty search_path only pg_catalog is found without a schema.
begin;
\ir ../helpers/common.psql
select plan(3);

-- Functions in the language SQL, made again: their bodies are analysed then.
create function pg_temp.remake(function oid) returns text
language plpgsql
set search_path = ''
as $$
declare
  definition constant text := pg_get_functiondef(function);
begin
  execute definition;
  return null;
exception when others then
  return sqlerrm;
end
$$;

select cmp_ok(count(*), '>', 20::bigint, 'there are functions in SQL')
from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'rdq'::regnamespace and l.lanname = 'sql';
select is_empty(
  $$
    select p.oid::regprocedure, pg_temp.remake(p.oid)
    from pg_proc p
    join pg_language l on l.oid = p.prolang
    where p.pronamespace = 'rdq'::regnamespace and l.lanname = 'sql' and pg_temp.remake(p.oid) is not null
  $$,
  'in SQL');

select count(*) = 1 as has_checker from pg_extension where extname = 'plpgsql_check' \gset
\if :has_checker
-- 2F005, the end without a return, is not one: after _refuse() there is nothing to return.
select n.nspname as checker
from pg_extension e
join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'plpgsql_check' \gset
select format($$
  create function pg_temp.complaints(function oid, relation oid, old_table name) returns setof text
  language sql
  set search_path = ''
  as 'select c.message || '' (line '' || coalesce(c.lineno, 0) || '')''
    from %I.plpgsql_check_function_tb(function, relation, oldtable => old_table) c
    where c.level = ''error'' and c.sqlstate <> ''2F005'''
$$, :'checker') \gexec
select is_empty(
  $$
    select p.oid::regprocedure, c.complaint
    from pg_proc p
    join pg_language l on l.oid = p.prolang
    left join pg_trigger t on t.tgfoid = p.oid
    cross join lateral pg_temp.complaints(p.oid, coalesce(t.tgrelid, 0), t.tgoldtable) c (complaint)
    where p.pronamespace = 'rdq'::regnamespace and l.lanname = 'plpgsql'
  $$,
  'in PL/pgSQL, in which plpgsql_check finds no error');
\else
select skip('PL/pgSQL is not checked: the extension plpgsql_check is not in this database', 1);
\endif

select * from finish();
rollback;
