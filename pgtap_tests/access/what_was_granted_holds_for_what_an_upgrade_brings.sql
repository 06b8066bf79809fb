-- An upgrade loads the functions again and ends as here.
begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(6);

select rdq.create_queue('q');
create role "Odd Role";
select rdq.grant_access('Odd Role', 'producer', '{q}');
select rdq.grant_access('Odd Role', 'viewer', '{q}');
set local client_min_messages = warning;

-- A new version: another overload, and a view that was made anew.
create function rdq.submit(queue text) returns uuid
language sql
return rdq.submit(queue, 'h', 'x');
drop view rdq.queue_stats cascade;
create view rdq.queue_stats as select q.queue from rdq.queue q;
select is(
  pg_temp.as_role('Odd Role', 'select count(*) from rdq.queue_stats'), '42501', 'what is new is not granted yet');

revoke all on all functions in schema rdq from public;
do $$
begin
  perform rdq._grant(r.rolname, a.capability) from rdq.access a join pg_roles r on r.oid = a.role;
end
$$;

select is(length(pg_temp.as_role('Odd Role', 'select rdq.submit(''q'')')), 36, 'the new overload');
select is(pg_temp.as_role('Odd Role', 'select count(*) from rdq.queue_stats'), '1', 'the new view');
select is(length(pg_temp.as_role('Odd Role', 'select rdq.submit(''q'', ''h'', ''x'')')), 36, 'what was there');
select is(pg_temp.as_role('Odd Role', 'select count(*) from rdq.claim(null, ''r'')'), '42501', 'and nothing else');

-- A role that is gone does not stop an upgrade.
drop owned by "Odd Role";
drop role "Odd Role";
select lives_ok(
  $$ select rdq._grant(r.rolname, a.capability) from rdq.access a join pg_roles r on r.oid = a.role $$,
  'its role is gone');

select * from finish();
rollback;
