begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
\ir ../helpers/roles.psql
select plan(14);

select pg_temp.create_role(c.name) from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name);
select is_empty($$ select * from rdq.doctor() $$, 'grants that hold');

create role rdq_test_gone;
insert into rdq.access values ('rdq_test_gone', 'worker', '{*}'), ('rdq_test_gone', 'viewer', '{*}');
drop role rdq_test_gone;
create role rdq_test_gone;
select is_empty($$ select * from rdq.doctor() $$, 'grants of a role that is gone are nobody''s');

grant execute on function rdq.claim, rdq.version() to public;
select matches(
  pg_temp.found('schema rdq'), '^error: everybody may use 2 functions and tables of it, such as function rdq.claim',
  'what everybody may execute');
select d.advice as for_all from rdq.doctor() d where d.subject = 'schema rdq' \gset
:for_all

revoke execute on function rdq.complete(uuid, uuid) from rdq_test_worker;
select is(
  pg_temp.found('role rdq_test_worker'),
  'warning: it is a worker, but may not use 1 function or view of it, such as rdq.complete(uuid,uuid)', 'a function');
revoke select on rdq.tasks from rdq_test_viewer;
revoke usage on schema rdq from rdq_test_viewer;
select is(
  pg_temp.found('role rdq_test_viewer'),
  'warning: it is a viewer, but may not use 2 functions and views of it, such as rdq.tasks', 'a view, and the schema');
select is(count(*), 2::bigint, 'nobody else') from rdq.doctor();
select d.advice as for_worker from rdq.doctor() d where d.subject = 'role rdq_test_worker' \gset
select d.advice as for_viewer from rdq.doctor() d where d.subject = 'role rdq_test_viewer' \gset
:for_worker;
:for_viewer;
select is_empty($$ select * from rdq.doctor() $$, 'granted again, as advised');

alter role rdq_test_worker set statement_timeout = '500ms';
select is(
  pg_temp.found('role rdq_test_worker'),
  'warning: statements end after 500ms: a redrive, purge or tick of many may never get through, by a setting of the role',
  'a setting of a role');
select d.advice as for_worker from rdq.doctor() d where d.subject = 'role rdq_test_worker' \gset
select is(:'for_worker'::text, 'alter role rdq_test_worker reset statement_timeout;', 'the advice resets it');
:for_worker
select is_empty($$ select * from rdq.doctor() $$, 'and helps');
select format('alter role rdq_test_worker in database %I set synchronous_commit = off', current_database()) as alter_role \gset
:alter_role;
select matches(pg_temp.found('role rdq_test_worker'), '^warning: commits do not wait', 'a setting in this database');
select d.advice as for_worker from rdq.doctor() d where d.subject = 'role rdq_test_worker' \gset
:for_worker
select is_empty($$ select * from rdq.doctor() $$, 'is reset there');
alter role rdq_test_worker in database template1 set statement_timeout = '500ms';
create role rdq_test_stranger;
alter role rdq_test_stranger set statement_timeout = '500ms';
alter role rdq_test_viewer set statement_timeout = '5s';
select is_empty($$ select * from rdq.doctor() $$, 'in another database, of another role, or harmless it does not matter');
select is(
  pg_temp.as_role('rdq_test_viewer', 'select count(*) from rdq.doctor()'), '0', 'a viewer of all queues is told the same');

select * from finish();
rollback;
