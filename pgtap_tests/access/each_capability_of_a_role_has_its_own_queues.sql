begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

select rdq.create_queue(q.name) from unnest('{produced,worked,operated,viewed}'::text[]) q (name);
create role rdq_test_app;
select rdq.grant_access('rdq_test_app', c.capability, array[c.queue])
from (values ('producer', 'produced'), ('worker', 'worked'), ('operator', 'operated'), ('viewer', 'viewed')) c (capability, queue);
select rdq.submit(q.name, 'h', 'x', error => '{"class": "PERMANENT"}')
from unnest('{produced,worked,operated,viewed}'::text[]) q (name);

-- Who may not see the queue of a task is told that there is none.
create temporary table sample (statement text, may text);
insert into sample values
  ('rdq.submit(%1$L, ''h'', ''x'')', 'produced'),
  ('rdq.submit_many(%1$L, ''[{"handler": "h", "payload": "x"}]'')', 'produced'),
  ('rdq.claim(array[%1$L], ''r'')', 'worked'),
  ('rdq.next_due_at(array[%1$L])', 'worked'),
  ('rdq.reclaim(10, array[%1$L])', 'worked operated'),
  ('rdq.tick(10, array[%1$L])', 'worked operated'),
  ('rdq.history(%2$L::uuid)', 'operated viewed'),
  ('rdq.envelope(%2$L::uuid)', 'operated viewed'),
  ('rdq.redrive_where(queue => %1$L, handler => ''other'')', 'operated'),
  ('rdq.purge_where(queue => %1$L, handler => ''other'')', 'operated'),
  ('rdq.pause_queue(%1$L)', 'operated'),
  ('rdq.resume_queue(%1$L)', 'operated'),
  ('rdq.redrive(%2$L::uuid)', 'operated'),
  ('rdq.purge(%2$L::uuid)', 'operated'),
  ('rdq.cancel(%3$L::uuid)', 'operated');

create temporary table call as
select s.statement, d.queue, d.task_id, l.id as live_id, d.queue = any (string_to_array(s.may, ' ')) as may
from sample s
cross join rdq.dead_letters d
join (
  select q.name, rdq.submit(q.name, 'h', 'x', run_at => '2999-01-01') as id
  from unnest('{produced,worked,operated,viewed}'::text[]) q (name)
) l on l.name = d.queue;

select plan(count(*)::integer + 2) from call;

select is(
  substring(pg_temp.as_role('rdq_test_app', format('select ' || c.statement, c.queue, c.task_id, c.live_id)) from 'RD00[37]'),
  case
    when c.may then null
    when c.statement like '%$L::uuid%' and c.queue in ('produced', 'worked') then 'RD003'
    else 'RD007'
  end,
  format('%s: %s', c.queue, c.statement))
from call c;
select is(
  pg_temp.as_role('rdq_test_app', 'select array_agg(distinct queue order by queue) from rdq.tasks'), '{operated,viewed}',
  'it sees the queues that it views or operates');
select is(
  pg_temp.as_role('rdq_test_app', 'select array_agg(distinct queue order by queue) from rdq.dead_letters()'),
  '{operated,viewed}', 'and their dead letters');

select * from finish();
rollback;
