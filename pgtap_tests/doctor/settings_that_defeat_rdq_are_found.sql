begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql

create temporary table sample (name text, value text, severity text);
insert into sample values
  ('default_transaction_isolation', 'serializable', 'warning'),
  ('default_transaction_isolation', 'repeatable read', 'warning'),
  ('default_transaction_isolation', 'read uncommitted', null),
  ('default_transaction_read_only', 'on', 'error'),
  ('synchronous_commit', 'off', 'warning'),
  ('synchronous_commit', 'local', null),
  ('statement_timeout', '4999ms', 'warning'),
  ('statement_timeout', '5s', null),
  ('statement_timeout', '0', null),
  ('idle_in_transaction_session_timeout', '59s', 'warning'),
  ('idle_in_transaction_session_timeout', '1min', null),
  ('idle_session_timeout', '10s', 'warning'),
  ('idle_session_timeout', '1d', null),
  ('lock_timeout', '1s', null);

create function pg_temp.found_with(name text, value text) returns text
language plpgsql
as $$
declare
  usual constant text := current_setting(name);
  answer text;
begin
  perform set_config(name, value, true);
  answer := pg_temp.found('setting ' || name);
  perform set_config(name, usual, true);
  return answer;
end
$$;

select plan(count(*)::integer + 4) from sample;

select is(substring(pg_temp.found_with(s.name, s.value) from '^\w+'), s.severity, format('%s = %s', s.name, s.value)) from sample s;

set local statement_timeout = '4s';
select is(
  pg_temp.found('setting statement_timeout'), 'warning: statements end after 4s: a redrive, purge or tick of many may never get through',
  'in words');
select is(d.advice, 'reset statement_timeout;', 'the advice') from rdq.doctor() d where d.subject like 'setting%';
set local statement_timeout = 0;
select is_empty($$ select * from rdq.doctor() $$, 'and nothing else');

select is(
  (select string_agg(v.value || ' ' || coalesce(rdq._timeout(v.value)::text, 'none'), ', ' order by v.place)
   from unnest('{0,5000,0.5min,3 s,250us,0ms,-1,abc,1e3}'::text[]) with ordinality v (value, place)),
  '0 none, 5000 00:00:05, 0.5min 00:00:30, 3 s 00:00:03, 250us 00:00:00.00025, 0ms none, -1 none, abc none, 1e3 none',
  'a timeout as settings have it');

select * from finish();
rollback;
