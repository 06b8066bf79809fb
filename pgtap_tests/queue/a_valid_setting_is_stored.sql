begin;
\ir ../helpers/common.psql

create temporary table sample (key text, given jsonb, stored jsonb);
insert into sample values
  ('max_attempts', '1', '1'),
  ('max_attempts', '10000', '10000'),
  ('max_attempts', '3.0', '3'),
  ('ambiguous_attempts', '1', '1'),
  ('vanish_limit', '1', '1'),
  ('max_releases', '0', '0'),
  ('backoff_base', '"10 seconds"', '"00:00:10"'),
  ('backoff_base', '10', '"00:00:10"'),
  ('backoff_base', '0.25', '"00:00:00.25"'),
  ('backoff_base', '"PT1M30S"', '"00:01:30"'),
  ('backoff_base', '0', '"00:00:00"'),
  ('backoff_factor', '1', '1'),
  ('backoff_factor', '1.5', '1.5'),
  ('backoff_cap', '"6 hours"', '"06:00:00"'),
  ('ladder', '["1 second", 60, "1 hour"]', '["00:00:01", "00:01:00", "01:00:00"]'),
  ('ladder', '[0]', '["00:00:00"]'),
  ('jitter', '0', '0'),
  ('jitter', '1', '1'),
  ('lease', '"30 seconds"', '"00:00:30"'),
  ('handler_timeout', '1.5', '"00:00:01.5"'),
  ('give_up_after', '"48 hours"', '"48:00:00"'),
  ('error_rules', '[]', '[]'),
  ('error_rules', '[{"match": "Timeout*", "class": "TRANSIENT"}]', '[{"match": "Timeout*", "class": "TRANSIENT"}]'),
  ('keep_succeeded', '"0"', '"00:00:00"'),
  ('keep_succeeded', '"forever"', 'null'),
  ('keep_dead', '"forever"', 'null'),
  ('keep_dead', '"14 hours"', '"14:00:00"'),
  ('max_payload_bytes', '0', '0'),
  ('max_payload_bytes', '268435456', '268435456'),
  ('on_version_mismatch', '"dead"', '"dead"'),
  ('on_version_mismatch', '"run"', '"run"'),
  ('notify', 'false', 'false');

select plan(2 * count(*)::integer + 1) from sample;

select rdq.create_queue('altered');
select lives_ok(
  format('select rdq.alter_queue(%L, jsonb_build_object(%L, %L::jsonb))', 'altered', s.key, s.given),
  format('%s may be %s', s.key, s.given))
from sample s;

create temporary table made as
select row_number() over () as number, s.* from sample s;
select count(rdq.create_queue('q' || m.number, jsonb_build_object(m.key, m.given))) from made m;
select is(to_jsonb(q) -> m.key, m.stored, format('%s of %s is stored', m.key, m.given))
from made m
join rdq.queues q on q.queue = 'q' || m.number
order by m.number;

select is(
  (select count(distinct s.key) from sample s),
  (select count(*) from jsonb_object_keys(to_jsonb((select q from rdq.queues q limit 1))) k (key)
   where k.key not in ('queue', 'paused_at', 'pause_reason', 'created_at')),
  'every setting is among the samples');

select * from finish();
rollback;
