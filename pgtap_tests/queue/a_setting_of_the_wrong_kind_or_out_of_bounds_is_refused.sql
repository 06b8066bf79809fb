begin;
\ir ../helpers/common.psql

create temporary table sample (key text, given jsonb);
insert into sample values
  ('max_attempts', '0'), ('max_attempts', '-1'), ('max_attempts', '10001'), ('max_attempts', '2.5'),
  ('max_attempts', '"3"'), ('max_attempts', 'true'), ('max_attempts', '[3]'), ('max_attempts', '{}'),
  ('max_attempts', '1e400'),
  ('ambiguous_attempts', '0'), ('ambiguous_attempts', '"many"'), ('ambiguous_attempts', '1.01'),
  ('vanish_limit', '0'), ('vanish_limit', 'false'),
  ('max_releases', '-1'), ('max_releases', '"0"'),
  ('backoff_base', '-1'), ('backoff_base', '"-1 second"'), ('backoff_base', '"soon"'), ('backoff_base', '"11 years"'),
  ('backoff_base', 'true'), ('backoff_base', '["1 minute"]'), ('backoff_base', '"999999999999 years"'),
  ('backoff_base', '""'), ('backoff_base', '1e300'), ('backoff_base', '"infinity"'),
  ('backoff_factor', '0.99'), ('backoff_factor', '0'), ('backoff_factor', '-2'), ('backoff_factor', '1001'),
  ('backoff_factor', '"2"'), ('backoff_factor', '1e400'),
  ('backoff_cap', '"-1 second"'), ('backoff_cap', '{}'),
  ('ladder', '[]'), ('ladder', '"1 minute"'), ('ladder', '60'), ('ladder', '{}'), ('ladder', '[null]'),
  ('ladder', '["1 minute", null]'), ('ladder', '["1 minute", "later"]'), ('ladder', '["1 minute", -1]'),
  ('ladder', '[["1 minute"]]'), ('ladder', '[true]'),
  ('jitter', '-0.1'), ('jitter', '1.1'), ('jitter', '"0.2"'),
  ('lease', '0'), ('lease', '"0"'), ('lease', '"-1 minute"'), ('lease', '"31 days"'), ('lease', '"forever"'),
  ('handler_timeout', '0'), ('handler_timeout', '"-5 seconds"'), ('handler_timeout', '"none"'),
  ('give_up_after', '0'), ('give_up_after', '"-1 day"'), ('give_up_after', '"forever"'),
  ('error_rules', '{}'), ('error_rules', '"TRANSIENT"'), ('error_rules', '[null]'), ('error_rules', '["Timeout*"]'),
  ('error_rules', '[{}]'), ('error_rules', '[{"match": "*"}]'), ('error_rules', '[{"class": "TRANSIENT"}]'),
  ('error_rules', '[{"match": "*", "class": "transient"}]'), ('error_rules', '[{"match": 1, "class": "TRANSIENT"}]'),
  ('error_rules', '[{"match": "*", "class": null}]'), ('error_rules', '[{"match": null, "class": "TRANSIENT"}]'),
  ('error_rules', '[{"match": "*", "class": "TRANSIENT", "retry": 1}]'),
  ('error_rules', '[[{"match": "*", "class": "TRANSIENT"}]]'),
  ('error_rules', '[{"match": "*", "class": "TRANSIENT"}, {"match": "*", "class": "FATAL"}]'),
  ('keep_succeeded', '-1'), ('keep_succeeded', '"never"'), ('keep_succeeded', 'false'),
  ('keep_dead', '"-1 day"'), ('keep_dead', '["forever"]'),
  ('max_payload_bytes', '-1'), ('max_payload_bytes', '"1 MB"'), ('max_payload_bytes', '268435457'),
  ('notify', '"yes"'), ('notify', '1'), ('notify', '"true"');

select plan(3 * count(*)::integer + 1) from sample;

select rdq.create_queue('q');
select pg_temp.stored() as before \gset

create temporary table refused as
select s.*, e.*
from sample s
cross join pg_temp.error_of(
  format('select rdq.alter_queue(%L, jsonb_build_object(%L, %L::jsonb))', 'q', s.key, s.given)) e;

select is(r.code, 'RD002', format('%s must not be %s', r.key, r.given)) from refused r;
select ok(r.message like '%' || r.key || '%', 'the message names ' || r.key) from refused r;
select ok(r.hint like '%' || r.key || ' is %', format('the hint says what %s is: %s', r.key, r.hint)) from refused r;
select is(pg_temp.stored(), :'before', 'nothing changed');

select * from finish();
rollback;
