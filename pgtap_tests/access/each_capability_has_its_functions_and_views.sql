begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(8);

select pg_temp.create_role(c.name) from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name);
create role rdq_test_nobody;

-- Functions and views that people call; the private ones begin with an underscore.
create temporary table thing as
select p.proname as name, p.oid as function, null::oid as view
from pg_proc p
where p.pronamespace = 'rdq'::regnamespace and p.proname not like '\_%'
union all
select c.relname, null, c.oid
from pg_class c
where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname not like '\_%';

create function pg_temp.allowed(role text) returns text[]
language sql
begin atomic
  select array_agg(distinct t.name::text order by t.name::text)
  from thing t
  where case when t.view is null
    then has_function_privilege(allowed.role, t.function, 'execute')
    else has_table_privilege(allowed.role, t.view, 'select')
  end;
end;

-- The other half: no overload of what is allowed is left out.
create function pg_temp.forbidden(role text) returns text[]
language sql
begin atomic
  select array_agg(distinct t.name::text order by t.name::text)
  from thing t
  where not case when t.view is null
    then has_function_privilege(forbidden.role, t.function, 'execute')
    else has_table_privilege(forbidden.role, t.view, 'select')
  end;
end;

create function pg_temp.can(capability text, names text[]) returns text
language sql
return is(
  pg_temp.allowed('rdq_test_' || capability),
  (select array_agg(n.name order by n.name) from unnest(names) n (name)),
  capability);

select pg_temp.can('producer', '{version,uuid_v7,submit,submit_many}');
select pg_temp.can('worker', '{version,claim,heartbeat,complete,fail,report,release,reclaim,next_due_at,tick,
  policies,callbacks,runner_seen,runner_gone}');
select pg_temp.can('viewer', '{version,tasks,queues,queue_stats,recent_queue_stats,refresh_queue_stats,dead_letters,dead_letter_groups,
  dead_letter_timeline,history,envelope,fingerprint,redrive_status,redrives,audit_log,endpoints,runners,doctor}');
select pg_temp.can('operator', '{version,tasks,queues,queue_stats,recent_queue_stats,refresh_queue_stats,dead_letters,dead_letter_groups,
  dead_letter_timeline,history,envelope,fingerprint,redrive_status,redrives,audit_log,endpoints,runners,doctor,redrive,redrive_where,pause_redrive,resume_redrive,cancel_redrive,purge,
  purge_where,cancel,cancel_where,pause_queue,resume_queue,reclaim,tick}');
select is(pg_temp.forbidden('rdq_test_admin'), null, 'an admin may do everything');
select is(pg_temp.allowed('rdq_test_nobody'), null, 'who was granted nothing may do nothing');

select is_empty(
  $$
    select allowed.name
    from unnest('{producer,worker,viewer,operator}'::text[]) c (name)
    cross join lateral unnest(pg_temp.allowed('rdq_test_' || c.name)) allowed (name)
    where allowed.name = any (pg_temp.forbidden('rdq_test_' || c.name))
  $$,
  'every overload is allowed, or none');
select is(
  (select array_agg(distinct p.proname::text order by p.proname::text)
   from pg_proc p
   cross join unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name)
   where p.pronamespace = 'rdq'::regnamespace and p.proname like '\_%'
     and has_function_privilege('rdq_test_' || c.name, p.oid, 'execute')),
  '{_doctor,_may_see_redrive,_queue_patterns,_spent,_word_characters}',
  'of the private functions only those that views and fingerprint() call');

select * from finish();
rollback;
