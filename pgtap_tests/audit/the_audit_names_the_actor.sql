begin;
select plan(7);

create role rdq_test_ada;
create role rdq_test_app;
grant rdq_test_ada to rdq_test_app;
select rdq.create_queue('q');
select rdq.grant_access('rdq_test_ada', 'operator');

create function pg_temp.last_actor() returns text
language sql
begin atomic
  select a.actor from rdq.audit a order by a.id desc limit 1;
end;

select is(pg_temp.last_actor(), session_user::text, 'by default the user of the session');

set local rdq.actor = 'ada@example.org';
select rdq.pause_queue('q', '1');
select is(pg_temp.last_actor(), 'ada@example.org', 'rdq.actor, where it is set');
set local rdq.actor = '';
select rdq.pause_queue('q', '2');
select is(pg_temp.last_actor(), session_user::text, 'empty is not set');

set local session authorization rdq_test_ada;
select rdq.pause_queue('q', '3');
set local session authorization default;
select is(pg_temp.last_actor(), 'rdq_test_ada', 'another user of the session');

set local session authorization rdq_test_app;
set local role rdq_test_ada;
select rdq.pause_queue('q', '4');
set local rdq.actor = 'grüße';
select rdq.pause_queue('q', '5');
reset role;
set local session authorization default;
select is(pg_temp.last_actor(), 'grüße', 'text of any language');
select is(
  (select a.actor from rdq.audit a order by a.id desc offset 1 limit 1), 'rdq_test_app',
  'who has taken a role is still who has connected');
select isnt(pg_temp.last_actor(), pg_get_userbyid(n.nspowner)::text, 'never the owner, whose rights the functions have')
from pg_namespace n where n.nspname = 'rdq';

select * from finish();
rollback;
