begin;
\ir ../helpers/common.psql

create temporary table sample (item text, named text, code text default 'RD002');
insert into sample (item, named) values
  ('null', 'object'), ('"x"', 'object'), ('[]', 'object'), ('[{"handler": "h", "payload": "x"}]', 'object'),
  ('{}', 'handler'),
  ('{"payload": "x"}', 'handler'),
  ('{"handler": "H", "payload": "x"}', 'handler'),
  ('{"handler": 7, "payload": {"a": 1}, "max_attempts": 0}', 'max_attempts'),
  ('{"handler": "h"}', 'payload'),
  ('{"handler": "h", "payload": null}', 'payload'),
  ('{"handler": "h", "payload_base64": "%%"}', 'base64'),
  ('{"handler": "h", "payload": "x", "payload_base64": "eA=="}', 'payload'),
  ('{"handler": "h", "payload": "x", "queue": "other"}', '"queue"'),
  ('{"handler": "h", "payload": "x", "dedup_key": "k"}', '"dedup_key"'),
  ('{"handler": "h", "payload": "x", "dedupe_key": ""}', 'dedupe_key'),
  ('{"handler": "h", "payload": "x", "max_attempts": "many"}', 'many'),
  ('{"handler": "h", "payload": "x", "max_attempts": 1.5}', '1.5'),
  ('{"handler": "h", "payload": "x", "max_attempts": 99999999999}', '99999999999'),
  ('{"handler": "h", "payload": "x", "run_at": "soon"}', 'soon'),
  ('{"handler": "h", "payload": "x", "run_at": "infinity"}', 'run_at'),
  ('{"handler": "h", "payload": "x", "give_up_at": "2026-13-01"}', '2026-13-01'),
  ('{"handler": "h", "payload": "x", "run_at": "2999-01-02", "give_up_at": "2999-01-01"}', 'run_at'),
  ('{"handler": "h", "payload": "x", "task_id": "7"}', '7'),
  ('{"handler": "h", "payload": "x", "headers": {"a": 1}}', 'headers'),
  ('{"handler": "h", "payload": "x", "headers": []}', 'headers'),
  ('{"handler": "h", "payload": "x", "error": "broken"}', 'error'),
  ('{"handler": "h", "payload": "x", "error": {"class": "FATAL"}}', 'FATAL'),
  -- NUL and half a surrogate pair, which jsonb refuses (trouble case A4).
  ('{"handler": "h", "payload": {"a": {"b": "c\u0000d"}}}', ''),
  ('{"handler": "h", "payload": {"a\u0000b": 1}}', ''),
  ('{"handler": "h", "payload": ["a", ["b\u0000"]]}', ''),
  ('{"handler": "h", "payload": "\u0000"}', ''),
  ('{"handler": "h\u0000", "payload": "x"}', ''),
  ('{"handler": "h", "payload": "x", "dedupe_key": "k\u0000"}', ''),
  ('{"handler": "h", "payload": "x", "headers": {"a": "\u0000"}}', ''),
  ('{"handler": "h", "payload": "x", "error": {"message": "\u0000"}}', ''),
  ('{"handler": "h", "payload": "\ud800"}', ''),
  ('{"handler": "h", "payload": {"a": "\udc00\ud800"}}', '');

select plan(3 * count(*)::integer + 5) from sample;

select rdq.create_queue('q');
select pg_temp.stored() as before \gset

create temporary table refused as
select s.*, e.message, e.hint, e.code as have
from sample s
cross join pg_temp.error_of(format(
  'select rdq.submit_many(queue => %L, tasks => %L)', 'q',
  format('[{"handler": "h", "payload": "x"}, {"handler": "h", "payload": "y"}, %s, {"handler": "", "payload": ""}]', s.item))) e;
select is(r.have, r.code, 'refused: ' || r.item) from refused r;
select ok(r.message like '%tasks[2]%' || r.named || '%', 'the message names it: ' || r.message) from refused r;
select ok(length(r.hint) > 20, 'a hint says what to do: ' || r.hint) from refused r;

select is(pg_temp.stored(), :'before', 'all or nothing');

select is(e.code, 'RD002', 'not an array: ' || coalesce(s.given, 'null'))
from (values ('{"handler": "h"}'), ('"x"'), ('null'), (null)) s (given)
cross join pg_temp.error_of(format('select rdq.submit_many(queue => %L, tasks => %L::jsonb)', 'q', s.given)) e;

select * from finish();
rollback;
