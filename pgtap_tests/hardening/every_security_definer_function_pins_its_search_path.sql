begin;
select plan(2);

create temporary table definer as
select p.oid::regprocedure::text as name, regexp_replace(s.setting, '^search_path=', '') as path
from pg_proc p
left join lateral unnest(p.proconfig) s (setting) on s.setting like 'search\_path=%'
where p.pronamespace = 'rdq'::regnamespace and p.prosecdef;

select cmp_ok(count(*), '>', 20::bigint, 'there are such functions') from definer;
select is_empty(
  $$ select d.name, d.path from definer d where d.path is null or d.path !~ '^pg_catalog(, .*)?, pg_temp$' or d.path ~ 'public|"\$user"' $$,
  'pg_catalog comes first, pg_temp last');

select * from finish();
rollback;
