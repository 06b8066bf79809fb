-- Functions run with the settings of whoever calls them.
begin;
\ir ../helpers/common.psql

create temporary table sample (name text, value text);
insert into sample values
  ('datestyle', 'SQL, DMY'), ('datestyle', 'German'), ('datestyle', 'Postgres, MDY'), ('timezone', 'America/St_Johns'),
  ('timezone', 'Pacific/Apia'), ('intervalstyle', 'sql_standard'), ('intervalstyle', 'iso_8601'),
  ('intervalstyle', 'postgres_verbose'), ('bytea_output', 'escape'), ('array_nulls', 'off'), ('transform_null_equals', 'on'),
  ('quote_all_identifiers', 'on'), ('extra_float_digits', '-15'), ('backslash_quote', 'off'), ('jit', 'on'),
  ('search_path', ''), ('search_path', 'rdq_test_shadow, pg_temp, rdq, pg_catalog'), ('enable_indexscan', 'off'),
  ('default_transaction_isolation', 'serializable'), ('lock_timeout', '100ms'), ('row_security', 'off'),
  ('client_encoding', 'LATIN1'), ('plan_cache_mode', 'force_generic_plan'), ('plan_cache_mode', 'force_custom_plan');

select plan(count(*)::integer) from sample;

-- Names that rdq uses, of the caller's.
create schema rdq_test_shadow;
create table rdq_test_shadow.task (id integer);
create table rdq_test_shadow.queue (id integer);
create table rdq_test_shadow.due (id integer);
create temporary table attempt (id integer);
create temporary table dead (id integer);
create function rdq_test_shadow.clock_timestamp() returns timestamptz language sql return '-infinity'::timestamptz;
create function rdq_test_shadow.submit(text) returns text language sql return 'shadow';
create function rdq_test_shadow.sha256(bytea) returns bytea language sql return ''::bytea;
create function rdq_test_shadow.format(text, text) returns text language sql return 'shadow';

-- A whole life and another; answers the states that it went through.
create function pg_temp.live() returns text
language plpgsql
as $$
declare
  id uuid;
  claim record;
  states text;
  letter record;
  name constant text := 'q' || (pg_catalog.random() * 1000000000)::integer;
begin
  perform rdq.create_queue(name, '{"ladder": ["0"], "keep_dead": "14 days", "give_up_after": "36 hours", "jitter": 0.25}');
  perform rdq.alter_queue(name, '{"lease": "90 seconds"}');
  id := rdq.submit(name, 'h', '{"a": "é"}', headers => '{"a": "b"}', dedupe_key => 'k',
    error => '{"type": "E", "at": "2026-01-31T12:00:00Z"}');
  if id is distinct from rdq.submit(name, 'h', 'x', dedupe_key => 'k') then
    return 'not joined';
  end if;
  select c.* into strict claim from rdq.claim(array[name], 'tester') c;
  select f.status into states from rdq.fail(claim.task_id, claim.claim_token, 'E', 'a message', error_class => 'PERMANENT') f;
  select d.* into strict letter from rdq.dead_letters(queue => name, error_type => 'E*', since => '-infinity') d;
  if exists (select from rdq.dead_letters(queue => name, after => letter.page)) then
    return 'shown twice';
  end if;
  states := pg_catalog.concat_ws(' ', states, (select r.state from rdq.redrive_where(queue => name, spread => '0') r));
  select c.* into strict claim from rdq.claim(array[name], 'tester') c;
  states := pg_catalog.concat_ws(' ', states, claim.attempt_no, claim.lease_expires_at - claim.claimed_at = '90 seconds');
  states := pg_catalog.concat_ws(' ', states, rdq.complete(claim.task_id, claim.claim_token));
  states := pg_catalog.concat_ws(' ', states, rdq.envelope(id) ->> 'status', rdq.envelope(id) ->> 'payload');
  states := pg_catalog.concat_ws(' ', states, (select pg_catalog.count(*) from rdq.history(id)));
  perform rdq.tick();
  return states;
end
$$;

create function pg_temp.live_with(name text, value text) returns text
language plpgsql
as $$
declare
  answer text;
  usual constant text := pg_catalog.current_setting(name);
begin
  perform pg_catalog.set_config(name, value, true);
  begin
    answer := pg_temp.live();
  exception when others then
    answer := sqlerrm;
  end;
  perform pg_catalog.set_config(name, usual, true);
  return answer;
end
$$;

select is(
  pg_temp.live_with(s.name, s.value), 'DEAD DONE 3 t t SUCCEEDED eyJhIjogIsOpIn0= 3',
  pg_catalog.concat_ws(' ', s.name, '=', s.value))
from sample s;

select * from finish();
rollback;
