-- Callers name them, and give them by place: functions gain parameters at the end, with a default, and lose none.
begin;

create temporary table promised (name text, required integer, parameters text);
insert into promised values
  ('version', 0, '{}'),
  ('create_queue', 1, '{queue,settings}'),
  ('alter_queue', 2, '{queue,settings}'),
  ('drop_queue', 1, '{queue}'),
  ('pause_queue', 1, '{queue,reason}'),
  ('resume_queue', 1, '{queue}'),
  ('submit', 3, '{queue,handler,payload,headers,run_at,give_up_at,max_attempts,dedupe_key,handler_version,error,task_id}'),
  ('submit_many', 2, '{queue,tasks}'),
  ('claim', 2, '{queues,runner,max_tasks,lease,code_version}'),
  ('heartbeat', 2, '{task_ids,claim_tokens,lease}'),
  ('complete', 2, '{task_id,claim_token}'),
  ('fail', 3, '{task_id,claim_token,error_type,message,stack,detail,error_class,retry_after}'),
  ('report', 3, '{task_ids,claim_tokens,failures}'),
  ('release', 2, '{task_ids,claim_tokens,reason,delay}'),
  ('reclaim', 0, '{max_tasks,queues}'),
  ('next_due_at', 1, '{queues}'),
  ('dead_letters', 0, '{queue,handler,error_type,error_class,dead_reason,fingerprint,since,until,max_rows,after}'),
  ('dead_letter_groups', 0, '{queue,handler,error_type,error_class,dead_reason,fingerprint,since,until}'),
  ('dead_letter_timeline', 0, '{queue,handler,error_type,error_class,dead_reason,fingerprint,since,until,bucket,max_rows}'),
  ('history', 1, '{task_id}'),
  ('envelope', 1, '{task_id}'),
  ('redrive_where', 0, '{queue,handler,error_type,error_class,dead_reason,fingerprint,since,until,spread,per_second,dry_run,reason}'),
  ('redrive_status', 1, '{redrive_id}'),
  ('pause_redrive', 1, '{redrive_id}'),
  ('resume_redrive', 1, '{redrive_id}'),
  ('cancel_redrive', 1, '{redrive_id}'),
  ('purge', 1, '{task_id,reason}'),
  ('purge_where', 0, '{queue,handler,error_type,error_class,dead_reason,fingerprint,since,until,dry_run,reason}'),
  ('cancel', 1, '{task_id,reason}'),
  ('purge_audit', 1, '{older_than,reason,max_rows}'),
  ('doctor', 0, '{}'),
  ('tick', 0, '{}'),
  ('grant_access', 2, '{role,capability,queues}'),
  ('revoke_access', 2, '{role,capability}'),
  ('fingerprint', 3, '{handler,error_type,message}');

select plan(2 * count(*)::integer + 3) from promised;

create temporary table existing as
select
  p.proname::text as name, p.pronargs - p.pronargdefaults as required, p.proargtypes,
  coalesce((array_agg(a.name order by a.place) filter (where a.mode in ('i', 'b', 'v')))[1 : p.pronargs], '{}') as parameters
from pg_proc p
left join lateral (
  select n.name, n.place, coalesce(p.proargmodes[n.place], 'i') as mode from unnest(p.proargnames) with ordinality n (name, place)
) a on true
where p.pronamespace = 'rdq'::regnamespace
group by p.oid, p.proname, p.pronargs, p.pronargdefaults, p.proargtypes;

select is(
  (select bool_and(e.parameters[1 : cardinality(p.parameters::text[])] = p.parameters::text[]) from existing e where e.name = p.name),
  true, format('%s(%s)', p.name, p.parameters))
from promised p;
select is(
  (select max(e.required)::integer from existing e where e.name = p.name), p.required, format('%s needs %s of them', p.name, p.required))
from promised p;

select set_eq(
  $$ select e.proargtypes[2]::regtype::text from existing e where e.name = 'submit' $$,
  '{text,json,jsonb,bytea}'::text[],
  'submit takes text, json, jsonb and bytea');
select set_eq(
  $$ select e.proargtypes[1]::regtype::text from existing e where e.name = 'redrive' $$,
  '{text,json,jsonb,bytea}'::text[],
  'so does redrive');
select is(
  bool_and(e.parameters = '{task_id,payload,run_at,give_up_at,reason,content_type,headers,to_queue,to_handler,to_handler_version,expected_redrive_count}'), true, 'redrive has its parameters')
from existing e where e.name = 'redrive';

select * from finish();
rollback;
