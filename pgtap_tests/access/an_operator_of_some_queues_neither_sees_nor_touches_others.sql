begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

select rdq.create_queue(q.name) from unnest('{payments.eu,payments.us,mails}'::text[]) q (name);
select pg_temp.create_role('operator', '{payments.*}');
select rdq.submit(q.name, 'h', q.name, error => '{"type": "E", "message": "m", "class": "PERMANENT"}')
from unnest('{payments.eu,payments.us,mails}'::text[]) q (name);
select rdq.submit(q.name, 'waits', 'x', run_at => '2999-01-01') from unnest('{payments.eu,mails}'::text[]) q (name);
select rdq.pause_queue('mails', 'a secret reason');
select rdq.pause_queue('payments.eu', 'a reason');
select d.task_id as mine from rdq.dead_letters d where d.queue = 'payments.eu' \gset
select d.task_id as foreign from rdq.dead_letters d where d.queue = 'mails' \gset
select t.task_id as foreign_live from rdq.tasks t where t.queue = 'mails' and t.status = 'PENDING' \gset

create temporary table sample (statement text, answer text);
insert into sample values
  ('select array_agg(queue order by queue) from rdq.dead_letters', '{payments.eu,payments.us}'),
  ('select array_agg(queue order by queue) from rdq.dead_letters()', '{payments.eu,payments.us}'),
  ('select count(*) from rdq.dead_letters(queue => ''mails'')', 'RD007'),
  ('select count(*) from rdq.dead_letters(handler => ''h'')', '2'),
  ('select count from rdq.dead_letter_groups()', '2'),
  ('select queues from rdq.dead_letter_groups()', '{payments.eu,payments.us}'),
  ('select count(*) from rdq.dead_letter_groups(queue => ''mails'')', 'RD007'),
  ('select count(*) from rdq.dead_letter_timeline(queue => ''mails'')', 'RD007'),
  ('select count(*) from rdq.dead_letters(queue => ''none'')', 'RD007'),
  ('select count(*) from rdq.dead_letters(queue => ''payments.none'')', 'RD001'),
  ('select rdq.cancel_where(queue => ''mails'')', 'RD007'),
  ('select remaining from rdq.cancel_where(handler => ''waits'', dry_run => true)', '1'),
  ('select array_agg(distinct queue order by queue) from rdq.tasks', '{payments.eu,payments.us}'),
  ('select array_agg(queue order by queue) from rdq.queues', '{payments.eu,payments.us}'),
  ('select array_agg(queue order by queue) from rdq.queue_stats', '{payments.eu,payments.us}'),
  ('select array_agg(queue order by queue) from rdq.recent_queue_stats()', '{payments.eu,payments.us}'),
  ('select array_agg(distinct queue order by queue) from rdq.audit_log', '{payments.eu,payments.us}'),
  ('select bool_or(d::text like ''%%mails%%'') from rdq.doctor() d', 'false'),
  ('select bool_or(d::text like ''%%payments.eu%%'') from rdq.doctor() d', 'true'),
  ('select count(*) from rdq.history(%2$L)', 'RD003'),
  ('select rdq.envelope(%2$L)', 'RD003'),
  ('select rdq.redrive(%2$L)', 'RD003'),
  ('select rdq.redrive(%2$L, ''edited'')', 'RD003'),
  ('select rdq.purge(%2$L)', 'RD003'),
  ('select rdq.cancel(%3$L)', 'RD003'),
  ('select rdq.pause_queue(''mails'')', 'RD007'),
  ('select rdq.resume_queue(''mails'')', 'RD007'),
  ('select rdq.redrive_where(queue => ''mails'')', 'RD007'),
  ('select rdq.redrive_where(queue => ''mails'', dry_run => true)', 'RD007'),
  ('select rdq.purge_where(queue => ''mails'')', 'RD007'),
  ('select rdq.purge_where(queue => ''mails'', dry_run => true)', 'RD007'),
  ('select matched from rdq.redrive_where(handler => ''h'', dry_run => true)', '2'),
  ('select remaining from rdq.purge_where(since => ''-infinity'', dry_run => true)', '2'),
  ('select count(*) from rdq.history(%1$L)', '1'),
  ('select (rdq.redrive(%1$L)).status', 'PENDING'),
  ('select rdq.cancel(%1$L)', ''),
  ('select rdq.resume_queue(''payments.eu'')', ''),
  ('select matched from rdq.redrive_where(handler => ''h'')', '2'),
  ('select rdq.cancel(%1$L)', ''),
  ('select purged from rdq.purge_where(since => ''-infinity'')', '1');

select plan(count(*)::integer + 2) from sample;

select is(
  pg_temp.as_role('rdq_test_operator', format(s.statement, :'mine', :'foreign', :'foreign_live')), s.answer,
  s.statement)
from sample s;

select is(pg_temp.status_of(:'foreign'), 'DEAD', 'the dead letter of the other queue is as it was');
select is(pg_temp.status_of(:'foreign_live'), 'PENDING', 'and so is its task that waits');

select * from finish();
rollback;
