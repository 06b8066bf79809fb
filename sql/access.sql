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
  if queues is null or cardinality(queues) not between 1 and 1000 or array_position(queues, null) is not null then
    perform rdq._refuse('RD002', 'queues is empty, has a null, or more than 1000 elements', 'Give globs such as {payments.*}; {*} is every queue.');
  end if;
  if exists (select from unnest(queues) q (glob) where octet_length(q.glob) not between 1 and 240) then
    perform rdq._refuse('RD002', 'a glob in queues is empty or longer than 240 bytes', 'Give globs such as {payments.*}; {*} is every queue.');
  end if;
  -- Two at once would change the same rows of the catalogue, where PostgreSQL fails instead of waiting.
  perform rdq._take_turn('access', 'who may do what');
  perform rdq._forget_lost_roles();
  select to_jsonb(a) into before
  from rdq.access a
  where a.role = rdq._role(grant_access.role) and a.capability = grant_access.capability collate "C"
  for update;
  insert into rdq.access as a (role, capability, queues)
  values (rdq._role(grant_access.role), grant_access.capability, grant_access.queues)
  on conflict on constraint access_pkey do update set queues = excluded.queues
  returning to_jsonb(a) into after;
  perform rdq._revoke_from_public();
  perform rdq._grant(role, capability);
  if after is distinct from before then
    perform rdq._audit('grant_access', before => before, after => after);
  end if;
end
$$;

comment on function rdq.grant_access(text, text, text[]) is
'Lets a role act in the queues (globs): producer submits; worker claims and reports; viewer looks; operator looks, redrives, cancels, purges and pauses; admin does everything. Called again it replaces the queues. A role that is renamed keeps what it was granted. What PUBLIC may execute in the schema, after a restore without privileges, is taken away. Errors: RD002, RD003, RD007, RD010.';

create or replace function rdq.revoke_access(role text, capability text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  was rdq.access;
begin
  perform rdq._require_all_queues('admin');
  perform rdq._take_turn('access', 'who may do what');
  perform rdq._forget_lost_roles();
  delete from rdq.access a
  where a.role = rdq._role(revoke_access.role) and a.capability = revoke_access.capability collate "C"
  returning a.* into was;
  if not found then
    perform rdq._check_access(role, capability);
    perform rdq._refuse('RD003',
      format('role "%s" has no access as %s', role, capability), 'select * from rdq.audit_log shows what was granted.');
  end if;
  -- Other capabilities may need the same functions: take all away, and give back what is left.
  execute format('revoke all on all functions in schema rdq from %s', was.role);
  execute format('revoke all on all tables in schema rdq from %s', was.role);
  execute format('revoke all on schema rdq from %s', was.role);
  perform rdq._grant(revoke_access.role, a.capability) from rdq.access a where a.role = was.role;
  perform rdq._audit('revoke_access', before => to_jsonb(was));
end
$$;

comment on function rdq.revoke_access(text, text) is 'Takes a capability from a role. Errors: RD002, RD003, RD007, RD010.';

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
        dead_letter_timeline, history, envelope, fingerprint, redrive_status, redrives, audit_log, endpoints, runners, doctor, _doctor, _queue_patterns, _spent, _may_see_redrive, _word_characters}'),
    ('operator', '{operator, viewer, upkeep}',
      '{redrive, redrive_where, pause_redrive, resume_redrive, cancel_redrive, cancel, cancel_where, purge, purge_where,
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
  where wanted.capability = _capability_names.capability collate "C"
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
    where p.pronamespace = 'rdq'::regnamespace and p.proname = any (rdq._capability_names(capability collate "C"))
  loop
    execute format('grant execute on function %s to %I', name, role);
  end loop;
  for name in
    select c.oid::regclass::text
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname = any (rdq._capability_names(capability collate "C"))
  loop
    execute format('grant select on %s to %I', name, role);
  end loop;
end
$$;

comment on function rdq._grant(text, text) is 'Gives a role the privileges of a capability.';

create or replace function rdq._role(name text) returns regrole
language sql stable strict
return to_regrole(quote_ident(name));

comment on function rdq._role(text) is 'The role of a name; null where there is none.';

create or replace function rdq._forget_lost_roles() returns void
language plpgsql
as $$
declare
  lost rdq.access;
begin
  for lost in
    delete from rdq.access a where not exists (select from pg_roles r where r.oid = a.role) returning a.*
  loop
    perform rdq._audit('revoke_access', reason => 'the role was dropped', before => to_jsonb(lost));
  end loop;
end
$$;

comment on function rdq._forget_lost_roles() is 'Forgets what was granted to roles that have been dropped since.';

create or replace function rdq._open_to_public() returns setof text
language sql stable
as $$
  select 'function ' || p.oid::regprocedure
  from pg_proc p
  where p.pronamespace = 'rdq'::regnamespace and has_function_privilege('public', p.oid, 'execute')
  union all
  select 'table ' || c.oid::regclass
  from pg_class c
  where c.relnamespace = 'rdq'::regnamespace and c.relkind in ('r', 'v')
    and has_table_privilege('public', c.oid, 'select,insert,update,delete,truncate')
$$;

comment on function rdq._open_to_public() is
'What everybody may use in the schema: nothing, but after a restore without privileges every function.';

create or replace function rdq._revoke_from_public() returns void
language plpgsql
as $$
declare
  name text;
begin
  for name in select * from rdq._open_to_public() loop
    execute format('revoke all on %s from public', name);
  end loop;
end
$$;

comment on function rdq._revoke_from_public() is 'Takes from everybody what nobody was granted.';

create or replace function rdq._check_access(role text, capability text) returns void
language plpgsql stable
as $$
begin
  if rdq._capability_names(capability collate "C") is null then
    perform rdq._refuse('RD002',
      format('capability is unknown: %s', coalesce(left(capability, 60), 'null')),
      'The capabilities are producer, worker, viewer, operator and admin.');
  end if;
  if rdq._role(role) is null then
    perform rdq._refuse('RD003',
      format('role %s does not exist', coalesce('"' || left(role, 60) || '"', 'null')), 'Create it first, with CREATE ROLE.');
  end if;
  if role collate "C" = current_user then
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
    perform rdq._refuse('RD007',
      format('role "%s" is not permitted to act as %s in every queue', rdq._caller(), capability),
      format('The owner or an admin of rdq can permit it: select rdq.grant_access(%L, %L, ''{*}'');', rdq._caller(), capability));
  end if;
end
$$;

comment on function rdq._require_all_queues(text) is 'Refuses (RD007) unless the caller has the capability in every queue.';

-- What was granted before an upgrade holds for what is new in it.
revoke all on all functions in schema rdq from public;
revoke all on all tables in schema rdq from public;
do $$
begin
  perform rdq._grant(r.rolname, a.capability) from rdq.access a join pg_roles r on r.oid = a.role;
end
$$;
