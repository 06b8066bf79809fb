begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(11);

select rdq.create_queue('q');
create role rdq_test_app;
select rdq.grant_access('rdq_test_app', 'producer');
select rdq.grant_access('rdq_test_app', 'worker', '{q}');
select rdq.grant_access('rdq_test_app', 'viewer');

select rdq.revoke_access(role => 'rdq_test_app', capability => 'viewer');
select is(pg_temp.as_role('rdq_test_app', 'select count(*) from rdq.tasks'), '42501', 'a viewer no more');
select is(length(pg_temp.as_role('rdq_test_app', 'select rdq.submit(''q'', ''h'', ''x'')')), 36, 'still a producer');
select is(
  pg_temp.as_role('rdq_test_app', 'select count(*) from rdq.claim(array[''q''], ''r'')'), '1', 'still a worker');
select is(pg_temp.as_role('rdq_test_app', 'select rdq.version()'), rdq.version(), 'what both give is still there');

select rdq.revoke_access('rdq_test_app', 'producer');
select is(pg_temp.as_role('rdq_test_app', 'select rdq.submit(''q'', ''h'', ''x'')'), '42501', 'a producer no more');
select is(
  pg_temp.as_role('rdq_test_app', 'select count(*) from rdq.claim(array[''q''], ''r'')'), '0', 'still a worker');
select rdq.revoke_access('rdq_test_app', 'worker');
select is(pg_temp.as_role('rdq_test_app', 'select rdq.version()'), '42501', 'nothing any more');

select throws_ok($$ select rdq.revoke_access('rdq_test_app', 'worker') $$, 'RD003', null, 'what was not granted');
select throws_ok($$ select rdq.revoke_access('rdq_test_app', 'king') $$, 'RD002', null, 'an unknown capability');
select throws_ok($$ select rdq.revoke_access('rdq_test_none', 'worker') $$, 'RD003', null, 'an unknown role');
select lives_ok($$ drop role rdq_test_app $$, 'nothing holds the role any more');

select * from finish();
rollback;
