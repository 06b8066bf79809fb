-- Audit: every change that an operator makes, every automatic halt and every deletion is one row that says
-- who, when, what, how many and why, with what it was before and what it became (rule 11). What is refused
-- or changes nothing leaves none. Rows are added and never changed, not even by the owner; old ones go
-- through purge_audit, which leaves a row that says so.

create or replace function rdq.purge_audit(older_than interval, reason text default null, max_rows integer default 10000)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
as $$
declare
  moment constant timestamptz := clock_timestamp();
  old rdq.audit[];
begin
  perform rdq._require_all_queues('admin');
  perform rdq._check_count('max_rows', max_rows);
  if older_than is null or extract(epoch from older_than) not between 86400 and 3155760000 then
    perform rdq._refuse('RD002',
      format('older_than is %s', coalesce(older_than::text, 'null')),
      'Give an interval from 1 day to 100 years, such as ''1 year'': what happened today can always be asked for.');
  end if;
  -- Walks audit_by_time from its lower end.
  old := array(
    select a
    from rdq.audit a
    where a.at < moment - older_than
    order by a.at
    limit max_rows
    for update skip locked
  );
  if old <> '{}' then
    perform rdq._audit('purge_audit', filter => jsonb_build_object('older_than', older_than), affected => cardinality(old),
      reason => reason, before => (
        select jsonb_build_object(
          'first_id', min(o.id), 'last_id', max(o.id), 'first_at', min(o.at), 'last_at', max(o.at),
          'transaction', pg_current_xact_id()::text)
        from unnest(old) o
      ));
    delete from rdq.audit a where a.id = any (array(select o.id from unnest(old) o));
  end if;
  return cardinality(old);
end
$$;

comment on function rdq.purge_audit(interval, text, integer) is
'Deletes rows of the audit that are older than an interval (at least 1 day), at most max_rows (up to 10,000) of them, oldest first, and says how many: call it again, each time in a transaction of its own, until there are none. It writes a row itself, with the ids and times of what went. Errors: RD002, RD007.';

create or replace function rdq._audit(
  action text,
  queue text default null,
  task_id uuid default null,
  redrive_id uuid default null,
  filter jsonb default null,
  affected bigint default 1,
  reason text default null,
  before jsonb default null,
  after jsonb default null
) returns void
language plpgsql
as $$
begin
  loop
    insert into rdq.audit (at, actor, login, action, queue, task_id, redrive_id, filter, affected, reason, before, after)
    values (
      clock_timestamp(), rdq._actor(), session_user, action, queue, task_id, redrive_id, filter, affected,
      rdq._clip(reason, 4096), before, after
    )
    -- Somebody had the same number.
    on conflict do nothing;
    exit when found;
  end loop;
end
$$;

comment on function rdq._audit(text, text, uuid, uuid, jsonb, bigint, text, jsonb, jsonb) is
'Writes a row of the audit; the one place that does. Of a reason it keeps 4 KiB.';

create or replace function rdq._refuse_audit_change() returns trigger
language plpgsql
as $$
begin
  perform rdq._refuse('RD007',
    format('rdq.audit is append only; %s is not permitted', lower(tg_op collate "C")),
    'The audit says what happened. Add a row by acting, with a reason; old rows go through rdq.purge_audit.');
  return null;
end
$$;

comment on function rdq._refuse_audit_change() is 'Keeps the audit append only, for everyone.';

create or replace function rdq._check_audit_purge() returns trigger
language plpgsql
as $$
begin
  -- No need to know who deletes: what counts is that this transaction says so, and exactly what.
  if not exists (
    select
    from rdq.audit a
    join (select count(*), min(g.id), max(g.id) from gone g) as g (count, first_id, last_id)
      on a.affected = g.count
        and a.before @> jsonb_build_object('first_id', g.first_id, 'last_id', g.last_id)
    where a.action = 'purge_audit' and a.before ->> 'transaction' = pg_current_xact_id()::text
  ) then
    perform rdq._refuse('RD007',
      'rdq.audit is append only; delete is not permitted',
      'The audit says what happened. Old rows go through rdq.purge_audit, which leaves a row that says so.');
  end if;
  return null;
end
$$;

comment on function rdq._check_audit_purge() is 'Lets rows of the audit go only with a row of purge_audit in the same transaction that names them.';

create or replace trigger audit_is_append_only
before update or truncate on rdq.audit
for each statement execute function rdq._refuse_audit_change();

create or replace trigger audit_purge_is_audited
after delete on rdq.audit
referencing old table as gone
for each statement execute function rdq._check_audit_purge();
