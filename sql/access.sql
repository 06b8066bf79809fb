-- Access: who may do what, and in which queues. A capability is a set of functions and views; granting it
-- gives EXECUTE or SELECT on them and remembers the queues, which the functions ask for. Nobody but the
-- owner touches a table, and nothing here is executable by PUBLIC.

create or replace function rdq.grant_access(role text, capability text, queues text[] default '{*}') returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  before jsonb;
  after jsonb;
begin
  perform rdq._require_all_queues('admin');
  perform rdq._check_access(role, capability);
  if queues is null or cardinality(queues) = 0 or array_position(queues, null) is not null then
    perform rdq._refuse('RD002', 'queues is empty or has a null', 'Give globs such as {payments.*}; {*} is every queue.');
  end if;
  select to_jsonb(a) into before
  from rdq.access a
  where a.role = grant_access.role and a.capability = grant_access.capability
  for update;
  insert into rdq.access as a (role, capability, queues)
  values (grant_access.role, grant_access.capability, grant_access.queues)
  on conflict on constraint access_pkey do update set queues = excluded.queues
  returning to_jsonb(a) into after;
  perform rdq._grant(role, capability);
  if after is distinct from before then
    perform rdq._audit('grant_access', before => before, after => after);
  end if;
end
$$;

comment on function rdq.grant_access(text, text, text[]) is
'Lets a role act in the queues (globs): producer submits; worker claims and reports; viewer looks; operator looks, redrives, cancels, purges and pauses; admin does everything. Called again it replaces the queues. Errors: RD002, RD003, RD007.';

create or replace function rdq.revoke_access(role text, capability text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  was rdq.access;
begin
  perform rdq._require_all_queues('admin');
  delete from rdq.access a
  where a.role = revoke_access.role and a.capability = revoke_access.capability
  returning a.* into was;
  if not found then
    perform rdq._check_access(role, capability);
    perform rdq._refuse('RD003',
      format('role "%s" has no access as %s', role, capability), 'select * from rdq.audit_log shows what was granted.');
  end if;
  -- A role that was dropped has lost its privileges, but one that is created anew would find its queues.
  if exists (select from pg_roles r where r.rolname = role) then
    -- Other capabilities may need the same functions: take all away, and give back what is left.
    execute format('revoke all on all functions in schema rdq from %I', role);
    execute format('revoke all on all tables in schema rdq from %I', role);
    execute format('revoke all on schema rdq from %I', role);
    perform rdq._grant(a.role, a.capability) from rdq.access a where a.role = revoke_access.role;
  end if;
  perform rdq._audit('revoke_access', before => to_jsonb(was));
end
$$;

comment on function rdq.revoke_access(text, text) is 'Takes a capability from a role. Errors: RD002, RD003, RD007.';

create or replace function rdq._capabilities()
returns table (capability text, includes text[], names text[])
language sql immutable
as $$
  values
    ('producer', '{producer}'::text[], '{version, uuid_v7, submit, submit_many}'::text[]),
    ('worker', '{worker, upkeep}',
      '{version, claim, heartbeat, complete, fail, report, release, reclaim, next_due_at, tick,
        policies, callbacks, runner_seen, runner_gone}'),
    ('viewer', '{viewer}',
      '{version, tasks, queues, queue_stats, recent_queue_stats, refresh_queue_stats, dead_letters, dead_letter_groups,
        dead_letter_timeline, history, envelope, fingerprint, redrive_status, redrives, audit_log, endpoints, runners, doctor, _doctor, _queue_patterns, _spent, _may_see_redrive}'),
    ('operator', '{operator, viewer, upkeep}',
      '{redrive, redrive_where, pause_redrive, resume_redrive, cancel_redrive, cancel, purge, purge_where,
        pause_queue, resume_queue, reclaim, tick}'),
    ('admin', '{admin, operator, viewer, worker, producer, upkeep}',
      '{create_queue, alter_queue, drop_queue, set_endpoint, drop_endpoint, grant_access, revoke_access,
        purge_audit}')
$$;

comment on function rdq._capabilities() is
'The capabilities: what each includes (upkeep is what workers and operators share), and the functions and views that it adds. The one home of these facts.';

create or replace function rdq._capability_names(capability text) returns text[]
language sql immutable
as $$
  select array_agg(distinct n.name)
  from rdq._capabilities() wanted
  join rdq._capabilities() c on c.capability = any (wanted.includes)
  cross join unnest(c.names) n (name)
  where wanted.capability = _capability_names.capability
$$;

comment on function rdq._capability_names(text) is 'Every function and view that a capability gives; null for one that does not exist.';

create or replace function rdq._grant(role text, capability text) returns void
language plpgsql
as $$
declare
  name text;
begin
  execute format('grant usage on schema rdq to %I', role);
  for name in
    select p.oid::regprocedure::text
    from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace and p.proname = any (rdq._capability_names(capability))
  loop
    execute format('grant execute on function %s to %I', name, role);
  end loop;
  for name in
    select c.oid::regclass::text
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname = any (rdq._capability_names(capability))
  loop
    execute format('grant select on %s to %I', name, role);
  end loop;
end
$$;

comment on function rdq._grant(text, text) is 'Gives a role the privileges of a capability.';

create or replace function rdq._check_access(role text, capability text) returns void
language plpgsql stable
as $$
begin
  if rdq._capability_names(capability) is null then
    perform rdq._refuse('RD002',
      format('capability is unknown: %s', coalesce(left(capability, 60), 'null')),
      'The capabilities are producer, worker, viewer, operator and admin.');
  end if;
  if not exists (select from pg_roles r where r.rolname = role) then
    perform rdq._refuse('RD003',
      format('role %s does not exist', coalesce('"' || left(role, 60) || '"', 'null')), 'Create it first, with CREATE ROLE.');
  end if;
  if role = current_user then
    perform rdq._refuse('RD002',
      format('role "%s" owns the schema', role), 'The owner may do everything; name another role.');
  end if;
end
$$;

comment on function rdq._check_access(text, text) is 'Refuses (RD002, RD003) an unknown capability or role.';

create or replace function rdq._require_all_queues(capability text) returns void
language plpgsql stable
as $$
begin
  if not coalesce('%' = any (rdq._queue_patterns(capability)), true) then
    perform rdq._require(capability, '*');
  end if;
end
$$;

comment on function rdq._require_all_queues(text) is 'Refuses (RD007) unless the caller has the capability in every queue.';

-- What was granted before an upgrade holds for what is new in it.
revoke all on all functions in schema rdq from public;
revoke all on all tables in schema rdq from public;
do $$
begin
  perform rdq._grant(a.role, a.capability) from rdq.access a join pg_roles r on r.rolname = a.role;
end
$$;
