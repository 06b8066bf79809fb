-- Audit: every change that an operator makes, and every deletion by retention, is one row that says who,
-- when, what, how many and why (rule 11). Rows are added and never changed, not even by the owner.

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
  insert into rdq.audit (at, actor, action, queue, task_id, redrive_id, filter, affected, reason, before, after)
  values (clock_timestamp(), rdq._actor(), action, queue, task_id, redrive_id, filter, affected, reason, before, after);
end
$$;

comment on function rdq._audit(text, text, uuid, uuid, jsonb, bigint, text, jsonb, jsonb) is 'Writes a row of the audit; the one place that does.';

create or replace function rdq._refuse_audit_change() returns trigger
language plpgsql
as $$
begin
  perform rdq._refuse('RD007',
    format('rdq.audit is append only; %s is not permitted', lower(tg_op)),
    'The audit says what happened. Add a row by acting, with a reason.');
  return null;
end
$$;

comment on function rdq._refuse_audit_change() is 'Keeps the audit append only, for everyone.';

create or replace trigger audit_is_append_only
before update or delete or truncate on rdq.audit
for each statement execute function rdq._refuse_audit_change();
