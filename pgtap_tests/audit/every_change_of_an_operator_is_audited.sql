begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(4);

create role rdq_test_ada;
set local rdq.actor = 'ada';

select rdq.create_queue('q', '{"max_attempts": 3, "keep_dead": "1 hour"}');
select rdq.create_queue('q', '{"max_attempts": 4}');
select rdq.alter_queue('q', '{"max_attempts": 5}');
select rdq.pause_queue('q', 'a reason');
select rdq.resume_queue('q');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select rdq.redrive(:'id', reason => 'a reason');
select rdq.cancel(:'id', 'a reason');
select rdq.redrive_where(queue => 'q', reason => 'a reason');
select rdq.cancel(:'id', 'a reason');
select rdq.submit('q', 'other', 'x', error => '{"class": "PERMANENT"}');
select rdq.purge_where(queue => 'q', handler => 'other', reason => 'a reason');
select rdq.purge(:'id', 'a reason');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}');
select pg_temp.pass('2 hours');
select rdq.tick();
select rdq.grant_access('rdq_test_ada', 'viewer', '{q}');
select rdq.revoke_access('rdq_test_ada', 'viewer');
select rdq.drop_queue('q');

select pg_temp.rows_are(
  $$ select action, queue, affected, reason from rdq.audit_log order by id $$,
  $$
    values
      ('create_queue', 'q', 1::bigint, null),
      ('create_queue', 'q', 1, null),
      ('alter_queue', 'q', 1, null),
      ('pause_queue', 'q', 1, 'a reason'),
      ('resume_queue', 'q', 1, null),
      ('redrive', 'q', 1, 'a reason'),
      ('cancel', 'q', 1, 'a reason'),
      ('redrive_where', 'q', 1, 'a reason'),
      ('cancel', 'q', 1, 'a reason'),
      ('purge_where', 'q', 1, 'a reason'),
      ('purge', 'q', 1, 'a reason'),
      ('retention', 'q', 1, 'keep_dead has passed'),
      ('grant_access', null, 1, null),
      ('revoke_access', null, 1, null),
      ('drop_queue', 'q', 1, null)
  $$,
  'one row each');
select is(
  array_agg(array[a.before ->> 'max_attempts', a.after ->> 'max_attempts'] order by a.id), '{{null,3},{3,4},{4,5}}',
  'settings before and after')
from rdq.audit_log a where a.action in ('create_queue', 'alter_queue');
select is(
  array_agg(array[a.before ->> 'capability', a.after ->> 'capability', a.after ->> 'role'] order by a.id),
  '{{null,viewer,rdq_test_ada},{viewer,null,null}}',
  'access before and after')
from rdq.audit_log a where a.action in ('grant_access', 'revoke_access');
select ok(bool_and(a.actor = 'ada' and a.at between now() and clock_timestamp()), 'who and when') from rdq.audit_log a;

select * from finish();
rollback;
