-- By SET ROLE, as connection poolers do it, and as the user of the session.
begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

select rdq.create_queue('q');
select pg_temp.create_role(c.name) from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name);

create temporary table dead as
select row_number(
  ) over () as place, rdq.submit('q', 'h', 'x', run_at => '2999-01-01', error => '{"class": "PERMANENT"}') as id
from generate_series(1, 500);

-- Who may; all others are refused. %1$s is a dead letter of its own.
create temporary table sample (statement text, may text);
insert into sample values
  ('select rdq.submit(''q'', ''h'', ''text'')', 'producer admin'),
  ('select rdq.submit(''q'', ''h'', ''{}''::json)', 'producer admin'),
  ('select rdq.submit(''q'', ''h'', ''{}''::jsonb)', 'producer admin'),
  ('select rdq.submit(''q'', ''h'', ''x''::bytea)', 'producer admin'),
  ('select rdq.submit_many(''q'', ''[{"handler": "h", "payload": "x"}]'')', 'producer admin'),
  ('select rdq.submit_many(''q'', ''[{"handler": "h", "payload": "x"}]''::json)', 'producer admin'),
  ('select rdq.submit_many(''q'', ''[{"handler": "h", "payload": "x"}]''::jsonb)', 'producer admin'),
  ('select task_id from rdq.claim(array[''q''], ''r'')', 'worker admin'),
  ('select rdq.heartbeat(''{}'', ''{}'')', 'worker admin'),
  ('select rdq.complete(gen_random_uuid(), gen_random_uuid())', 'worker admin'),
  ('select rdq.fail(gen_random_uuid(), gen_random_uuid(), ''E'')', 'worker admin'),
  ('select rdq.report(''{}'', ''{}'', ''{}'')', 'worker admin'),
  ('select rdq.release(''{}'', ''{}'')', 'worker admin'),
  ('select rdq.next_due_at(array[''q''])', 'worker admin'),
  ('select rdq.reclaim(10, array[''q''])', 'worker operator admin'),
  ('select rdq.tick(10, array[''q''])', 'worker operator admin'),
  ('select count(*) from rdq.tasks', 'viewer operator admin'),
  ('select count(*) from rdq.queues', 'viewer operator admin'),
  ('select count(*) from rdq.queue_stats', 'viewer operator admin'),
  ('select count(*) from rdq.recent_queue_stats()', 'viewer operator admin'),
  ('select rdq.refresh_queue_stats()', 'viewer operator admin'),
  ('select count(*) from rdq.audit_log', 'viewer operator admin'),
  ('select count(*) from rdq.dead_letters', 'viewer operator admin'),
  ('select count(*) from rdq.dead_letters(queue => ''q'')', 'viewer operator admin'),
  ('select count(*) from rdq.dead_letter_groups()', 'viewer operator admin'),
  ('select count(*) from rdq.history(%1$L)', 'viewer operator admin'),
  ('select rdq.envelope(%1$L)', 'viewer operator admin'),
  ('select count(*) from rdq.doctor()', 'viewer operator admin'),
  ('select rdq.redrive(%1$L)', 'operator admin'),
  ('select rdq.redrive(%1$L, ''edited'')', 'operator admin'),
  ('select rdq.redrive(%1$L, ''{}''::json)', 'operator admin'),
  ('select rdq.redrive(%1$L, ''{}''::jsonb)', 'operator admin'),
  ('select rdq.redrive(%1$L, ''x''::bytea)', 'operator admin'),
  ('select rdq.redrive_where(queue => ''q'', handler => ''other'')', 'operator admin'),
  ('select rdq.purge(%1$L)', 'operator admin'),
  ('select rdq.purge_where(queue => ''q'', handler => ''other'')', 'operator admin'),
  ('select rdq.pause_queue(''q'')', 'operator admin'),
  ('select rdq.resume_queue(''q'')', 'operator admin'),
  ('select rdq.create_queue(''new'')', 'admin'),
  ('select rdq.alter_queue(''q'', ''{}'')', 'admin'),
  ('select rdq.drop_queue(''new'')', 'admin'),
  ('select rdq.grant_access(''rdq_test_admin'', ''viewer'')', 'admin'),
  ('select rdq.revoke_access(''rdq_test_admin'', ''viewer'')', 'admin');

create temporary table call as
select
  row_number() over (order by h.by, r.name, s.place) as number, s.statement, r.name, h.by,
  r.name = any (string_to_array(s.may, ' ')) as may
from (select s.*, row_number() over () as place from sample s) s
cross join unnest('{producer,worker,viewer,operator,admin}'::text[]) r (name)
cross join unnest('{role,session}'::text[]) h (by);

select plan(count(*)::integer) from call;

select case when c.may
  then isnt(a.answer ~ '^(RD|42|22|XX|0A)[0-9A-Z]{3}$', true, format('%s by %s may: %s', c.name, c.by, c.statement))
  else is(a.answer, '42501', format('%s by %s may not: %s', c.name, c.by, c.statement))
end
from call c
join dead d on d.place = c.number
cross join lateral pg_temp.as_role('rdq_test_' || c.name, format(c.statement, d.id), c.by) a (answer)
order by c.number;

select * from finish();
rollback;
