-- One row for a change, with who and why; none for what is refused or changes nothing. A function that is new in one of
-- these capabilities has to be told here what it does.
begin;
\ir ../helpers/common.psql

create role rdq_test_ada;
select rdq.create_queue('q', '{"lease": 10}');
select rdq.submit('q', 'stays', 'x', run_at => '2999-01-01');

create function pg_temp.dead() returns uuid
language sql
return rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}');
create function pg_temp.run() returns uuid
language sql
begin atomic
  select r.redrive_id from rdq.redrives r where r.state in ('RUNNING', 'PAUSED') order by r.began_at desc limit 1;
end;

-- Written by others than operators: the answer of a tick or a bulk redrive about itself.
create temporary table automatic (action text);
insert into automatic values ('finish_redrive'), ('skip_redrive'), ('halt_redrive');

-- prepare is not looked at; act makes one change; idle is refused, or changes nothing any more.
create temporary table sample (
  place integer generated always as identity, name text, prepare text, act text, idle text[], rows integer default 1
);
insert into sample (name, prepare, act, idle) values
  ('create_queue', null, 'rdq.create_queue(''new'')',
    '{rdq.create_queue(''new''), "rdq.create_queue(''new'', ''{\"max_attempts\": 8}'')", rdq.create_queue(''NEW'')}'),
  ('alter_queue', null, 'rdq.alter_queue(''q'', ''{"max_attempts": 3}'')',
    '{"rdq.alter_queue(''q'', ''{\"max_attempts\": 3}'')", "rdq.alter_queue(''q'', ''{}'')",
      "rdq.alter_queue(''q'', ''{\"max_attempts\": 0}'')", "rdq.alter_queue(''none'', ''{}'')"}'),
  ('drop_queue', null, 'rdq.drop_queue(''new'')', '{rdq.drop_queue(''new''), rdq.drop_queue(''q'')}'),
  ('pause_queue', null, 'rdq.pause_queue(''q'', reason => ''why'')',
    '{"rdq.pause_queue(''q'', reason => ''why'')", rdq.pause_queue(''none'')}'),
  ('resume_queue', null, 'rdq.resume_queue(''q'')', '{rdq.resume_queue(''q''), rdq.resume_queue(''none'')}'),
  ('set_endpoint', null, 'rdq.set_endpoint(''q'', ''h'', ''https://example.org/'')',
    '{"rdq.set_endpoint(''q'', ''h'', ''https://example.org/'')", "rdq.set_endpoint(''q'', ''h'', ''example.org'')"}'),
  ('drop_endpoint', null, 'rdq.drop_endpoint(''q'', ''h'')', '{"rdq.drop_endpoint(''q'', ''h'')"}'),
  ('grant_access', null, 'rdq.grant_access(''rdq_test_ada'', ''viewer'')',
    '{"rdq.grant_access(''rdq_test_ada'', ''viewer'')", "rdq.grant_access(''rdq_test_none'', ''viewer'')"}'),
  ('revoke_access', null, 'rdq.revoke_access(''rdq_test_ada'', ''viewer'')',
    '{"rdq.revoke_access(''rdq_test_ada'', ''viewer'')"}'),
  ('redrive', 'pg_temp.dead()', 'rdq.redrive(pg_temp.dead(), ''edited'', reason => ''why'')',
    '{"rdq.redrive((select d.task_id from rdq.due d limit 1))", rdq.redrive(gen_random_uuid()),
      "rdq.redrive((select d.task_id from rdq.dead d limit 1), headers => ''[]'')"}'),
  ('cancel', null, 'rdq.cancel((select d.task_id from rdq.due d limit 1), reason => ''why'')',
    '{"rdq.cancel((select d.task_id from rdq.dead d limit 1))", rdq.cancel(gen_random_uuid())}'),
  ('cancel_where', 'rdq.submit(''q'', ''c'', ''x'')', 'rdq.cancel_where(handler => ''c'', reason => ''why'')',
    '{rdq.cancel_where(handler => ''c''), rdq.cancel_where(), rdq.cancel_where(queue => ''none'')}'),
  ('purge', 'rdq.submit(''q'', ''h'', ''x'')', 'rdq.purge(pg_temp.dead(), reason => ''why'')',
    '{"rdq.purge((select d.task_id from rdq.due d limit 1))", rdq.purge(gen_random_uuid())}'),
  ('purge_where', 'pg_temp.dead()', 'rdq.purge_where(queue => ''q'', reason => ''why'')',
    '{rdq.purge_where(queue => ''q''), rdq.purge_where(), rdq.purge_where(queue => ''none'')}'),
  ('redrive_where', 'pg_temp.dead() from generate_series(1, 3)',
    'rdq.redrive_where(queue => ''q'', per_second => 0.001, reason => ''why'')',
    '{"rdq.redrive_where(queue => ''q'', dry_run => true)", rdq.redrive_where(), rdq.redrive_where(queue => ''none'')}'),
  ('pause_redrive', null, 'rdq.pause_redrive(pg_temp.run(), reason => ''why'')',
    '{rdq.pause_redrive(pg_temp.run()), rdq.pause_redrive(gen_random_uuid())}'),
  ('resume_redrive', null, 'rdq.resume_redrive(pg_temp.run(), reason => ''why'')',
    '{rdq.resume_redrive(pg_temp.run()), rdq.resume_redrive(gen_random_uuid())}'),
  ('cancel_redrive', null, 'rdq.cancel_redrive(pg_temp.run(), reason => ''why'')',
    '{rdq.cancel_redrive((select r.redrive_id from rdq.redrives r limit 1)), rdq.cancel_redrive(gen_random_uuid())}'),
  ('purge_audit', 'count(*) from pg_temp.age_audit()', 'rdq.purge_audit(''1 year'', reason => ''why'')',
    '{rdq.purge_audit(''1 year''), rdq.purge_audit(''1 hour'')}');
-- These are no changes of an operator: whoever calls them does what any worker does.
insert into sample (name, act, idle, rows) values
  ('reclaim', 'rdq.reclaim()', '{}', 0),
  ('tick', 'rdq.tick()', '{}', 0);

create function pg_temp.age_audit() returns void
language sql
begin atomic
  insert into rdq.audit (at, actor, action, affected) values (now() - interval '2 years', 'nobody', 'cancel', 1);
end;

-- What a statement leaves in the audit, whether it is refused or not. An error that is not of rdq is a mistake here.
create function pg_temp.rows_of(statement text) returns setof rdq.audit
language plpgsql
as $$
declare
  last_id constant bigint := (select max(a.id) from rdq.audit a);
  error record;
begin
  error := pg_temp.error_of('select ' || statement);
  if error.code not like 'RD%' then
    raise exception '% fails: %', statement, error.message;
  end if;
  return query
  select a.* from rdq.audit a where a.id > last_id and a.action not in (select t.action from automatic t);
end
$$;

create function pg_temp.check_one(s sample) returns setof text
language plpgsql
as $$
declare
  statement text;
  takes_reason constant boolean := exists (
    select from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace and p.proname = s.name and 'reason' = any (p.proargnames)
  );
begin
  perform pg_temp.error_of('select ' || s.prepare) where s.prepare is not null;
  return query
  select is(
    array_agg(concat_ws(' ', a.actor, a.action, a.reason)),
    array_fill(concat_ws(' ', 'ada', s.name, case when takes_reason then 'why' end), array[s.rows]), s.act)
  from pg_temp.rows_of(s.act) a
  where s.rows > 0
  having s.rows > 0;
  if s.rows = 0 then
    return query select is(count(*), 0::bigint, s.act) from pg_temp.rows_of(s.act);
  end if;
  foreach statement in array s.idle loop
    return query select is(count(*), 0::bigint, 'no row: ' || statement) from pg_temp.rows_of(statement);
  end loop;
end
$$;

select plan(1 + count(*)::integer + sum(cardinality(s.idle))::integer) from sample s;

select is_empty(
  $$
    select n.name
    from rdq._capabilities() c
    cross join unnest(c.names) n (name)
    where c.capability in ('operator', 'admin')
      and n.name not like '\_%'
      and n.name not in (select s.name from sample s)
  $$,
  'every function of an operator or an admin is looked at here');

set local rdq.actor = 'ada';
create function pg_temp.check_all() returns setof text
language plpgsql
as $$
declare
  s sample;
begin
  for s in select * from sample order by place loop
    return query select pg_temp.check_one(s);
  end loop;
end
$$;
select pg_temp.check_all();

select * from finish();
rollback;
