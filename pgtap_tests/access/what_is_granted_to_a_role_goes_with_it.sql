begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(14);

select rdq.create_queue('q', '{"lease": 60}');
create role rdq_test_old;
select rdq.grant_access('rdq_test_old', 'worker', '{q}');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);

-- Renamed.
alter role rdq_test_old rename to rdq_test_new;
select is(pg_temp.as_role('rdq_test_new', 'select count(*) from rdq.claim(null, ''r'')'), '1', 'a role that is renamed keeps its queues');
create role rdq_test_old;
grant usage on schema rdq to rdq_test_old;
grant execute on function rdq.claim, rdq.tick to rdq_test_old;
select is(pg_temp.as_role('rdq_test_old', 'select count(*) from rdq.claim(array[''q''], ''r'')'), 'RD007', 'a new one of the old name has none');
select is(pg_temp.as_role('rdq_test_old', 'select count(*) from rdq.claim(null, ''r'')'), 'RD007', 'and is told so when it asks for all');
select is(pg_temp.as_role('rdq_test_old', 'select count(*) from rdq.tick()'), 'RD007', 'by a tick, too');

-- Withdrawn, while it holds a task.
select rdq.create_queue('other');
select l.task_id, l.claim_token from rdq.lease l \gset
select rdq.grant_access('rdq_test_new', 'worker', '{other}');
select is(
  pg_temp.as_role('rdq_test_new', format('select count(*) from rdq.heartbeat(array[%L]::uuid[], array[%L]::uuid[], ''30 days'')', :'task_id', :'claim_token')),
  '0', 'who may not work there any more holds nothing');
select ok(l.expires_at < now() + interval '2 minutes', 'and keeps nothing') from rdq.lease l;
select is(
  pg_temp.as_role('rdq_test_new', format('select rdq.complete(%L, %L)', :'task_id', :'claim_token')), 'true',
  'what it has done counts: it has been done');

-- Dropped.
create role rdq_test_gone;
select rdq.grant_access('rdq_test_gone', 'viewer', '{q}');
drop owned by rdq_test_gone;
drop role rdq_test_gone;
create role rdq_test_gone;
grant usage on schema rdq to rdq_test_gone;
grant select on rdq.queues to rdq_test_gone;
grant execute on function rdq._queue_patterns to rdq_test_gone;
select is(pg_temp.as_role('rdq_test_gone', 'select count(*) from rdq.queues'), '0', 'a new role of the name of one that was dropped sees nothing');
select is(count(*), 2::bigint, 'its grant is kept until somebody grants') from rdq.access;
select rdq.grant_access('rdq_test_new', 'viewer', '{q}');
select is(count(*), 2::bigint, 'and then forgotten') from rdq.access;
select is(a.reason, 'the role was dropped', 'which the audit says') from rdq.audit_log a where a.action = 'revoke_access';

-- Open to everybody, as a restore without privileges leaves it.
grant execute on all functions in schema rdq to public;
select matches(d.finding, 'everybody may use', 'the doctor says so') from rdq.doctor() d where d.subject = 'schema rdq';
select rdq.grant_access('rdq_test_new', 'viewer', '{q}');
select is_empty($$ select * from rdq.doctor() d where d.subject = 'schema rdq' $$, 'any grant takes it away');
select is(
  has_function_privilege('rdq_test_old', 'rdq.version()', 'execute'), false, 'from everybody');

select * from finish();
rollback;
