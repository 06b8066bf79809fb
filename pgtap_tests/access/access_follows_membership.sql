begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(11);

select rdq.create_queue(q.name) from unnest('{a,b}'::text[]) q (name);
create role rdq_test_team;
select rdq.grant_access('rdq_test_team', 'producer', '{a}');
create role rdq_test_member in role rdq_test_team;
create role rdq_test_aloof noinherit in role rdq_test_team;
create role rdq_test_both in role rdq_test_team;
select rdq.grant_access('rdq_test_both', 'producer', '{b}');

select is(
  length(pg_temp.as_role('rdq_test_member', 'select rdq.submit(''a'', ''h'', ''x'')', h.by)), 36,
  'a member, by ' || h.by)
from unnest('{role,session}'::text[]) h (by);
select is(
  pg_temp.as_role('rdq_test_member', 'select rdq.submit(''b'', ''h'', ''x'')'), 'RD007', 'no more than its group');
select is(
  pg_temp.as_role('rdq_test_aloof', 'select rdq.submit(''a'', ''h'', ''x'')', h.by), '42501',
  'one that does not inherit, by ' || h.by)
from unnest('{role,session}'::text[]) h (by);
select is(
  length(pg_temp.as_role('rdq_test_both', format('select rdq.submit(%L, ''h'', ''x'')', q.name))), 36,
  'its own and its group''s: ' || q.name)
from unnest('{a,b}'::text[]) q (name);

-- With a right of its own elsewhere it may call the function, but not for the queues of its group.
select rdq.grant_access('rdq_test_aloof', 'producer', '{b}');
select is(pg_temp.as_role('rdq_test_aloof', 'select rdq.submit(''a'', ''h'', ''x'')'), 'RD007', 'what it does not inherit');
select is(length(pg_temp.as_role('rdq_test_aloof', 'select rdq.submit(''b'', ''h'', ''x'')')), 36, 'what is its own');

-- The user of the session has rights that the role which it took has not.
create role rdq_test_mailer;
select rdq.grant_access('rdq_test_mailer', 'producer', '{b}');
create role rdq_test_login in role rdq_test_team, rdq_test_mailer;
create function pg_temp.taken(queue text) returns text
language plpgsql
as $$
declare
  answer text;
begin
  set local session authorization rdq_test_login;
  set local role rdq_test_mailer;
  begin
    answer := rdq.submit(queue, 'h', 'x');
  exception when others then
    answer := sqlstate;
  end;
  reset role;
  set local session authorization default;
  return answer;
end
$$;
select is(pg_temp.taken('a'), 'RD007', 'who takes a role has the rights of that role only');
select is(length(pg_temp.taken('b')), 36, 'those');

select * from finish();
rollback;
