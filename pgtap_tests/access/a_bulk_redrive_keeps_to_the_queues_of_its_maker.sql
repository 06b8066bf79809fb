begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(11);

select rdq.create_queue(q.name) from unnest('{payments.eu,mails}'::text[]) q (name);
select pg_temp.create_role('operator', '{payments.*}');
create role rdq_test_other;
select rdq.grant_access('rdq_test_other', 'operator', '{mails}');
create role rdq_test_owner_of_all;
select rdq.grant_access('rdq_test_owner_of_all', 'operator');
select pg_temp.write_dead('payments.eu', 10003);
select pg_temp.write_dead('mails', 5);

select pg_temp.as_role('rdq_test_operator', 'select redrive_id from rdq.redrive_where(since => ''-infinity'')') as id \gset
select is(
  pg_temp.as_role('rdq_test_operator', format('select matched from rdq.redrive_status(%L)', :'id')), '10003',
  'it matches its own');
select is(
  pg_temp.as_role('rdq_test_owner_of_all', format('select matched from rdq.redrive_status(%L)', :'id')), '10003',
  'who sees all queues sees it');
select is(
  pg_temp.as_role('rdq_test_other', format(s.statement, :'id')), 'RD003',
  'for others it does not exist: ' || s.statement)
from (values
  ('select matched from rdq.redrive_status(%L)'), ('select rdq.pause_redrive(%L)'), ('select rdq.cancel_redrive(%L)')
) s (statement);
select is(
  pg_temp.as_role('rdq_test_operator', format('select rdq.pause_redrive(%L)', :'id')), '', 'its maker can pause it');
select is(
  pg_temp.as_role('rdq_test_other', 'select count(*) from rdq.doctor() d where d.subject like ''redrive%'''), '0',
  'the doctor does not tell others of it');
select is(
  pg_temp.as_role('rdq_test_operator', 'select count(*) from rdq.doctor() d where d.subject like ''redrive%'''), '1',
  'but its maker');
select is(
  pg_temp.as_role('rdq_test_owner_of_all', format('select rdq.resume_redrive(%L)', :'id')), '',
  'who may act in all queues can resume it');

select rdq.tick();
select is(s.state || ' ' || s.sent, 'DONE 10003', 'the owner carries it on') from rdq.redrive_status(:'id') s;
select is(count(*), 5::bigint, 'and touches no other queue') from rdq.dead_letters;

select * from finish();
rollback;
