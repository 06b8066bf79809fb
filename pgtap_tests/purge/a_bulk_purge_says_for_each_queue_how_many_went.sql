begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(7);

select rdq.create_queue(q.name) from unnest('{payments.eu,payments.us,mails}'::text[]) q (name);
select pg_temp.create_role('operator', '{payments.*}');
select pg_temp.write_dead('payments.eu', 3);
select pg_temp.write_dead('payments.us', 2);
select pg_temp.write_dead('mails', 4);

select is(
  pg_temp.as_role('rdq_test_operator', 'select purged from rdq.purge_where(since => ''-infinity'', reason => ''old'')'), '5',
  'an operator of some queues deletes what is theirs');
select pg_temp.rows_are(
  $$ select queue, affected, reason, filter ->> 'since' from rdq.audit where action = 'purge_where' order by queue $$,
  $$ values ('payments.eu', 3::bigint, 'old', '-infinity'), ('payments.us', 2, 'old', '-infinity') $$,
  'a row for each queue from which something went');
select is(
  pg_temp.as_role('rdq_test_operator', 'select sum(affected) from rdq.audit_log where action = ''purge_where'''), '5',
  'which those see who may see the queue');

select is(p.purged, 0::bigint, 'where nothing matches')
from rdq.purge_where(queue => 'payments.eu') p;
select is(p.remaining, 4::bigint, 'and where it is only counted') from rdq.purge_where(queue => 'mails', dry_run => true) p;
select is(count(*), 2::bigint, 'there is nothing to tell') from rdq.audit a where a.action = 'purge_where';
select is(count(*), 4::bigint, 'the other queue is as it was') from rdq.dead_letters;

select * from finish();
rollback;
