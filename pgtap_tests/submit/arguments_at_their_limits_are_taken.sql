begin;
\ir ../helpers/common.psql

create temporary table sample (argument text, given text);
insert into sample values
  ('headers', $$ '{}' $$),
  ('headers', $$ '{"": ""}' $$),
  ('headers', $$ '{"Rdq.id": "b", "xrdq.": "c", "rdq": "d"}' $$),
  ('headers', $$ jsonb_build_object('a', repeat('b', 16000)) $$),
  ('headers', $$ '{"a": "grüße"}' $$),
  ('run_at', $$ '2001-01-01' $$),
  ('max_attempts', $$ 1 $$),
  ('max_attempts', $$ 10000 $$),
  ('dedupe_key', $$ 'k' $$),
  ('dedupe_key', $$ repeat('k', 65536) $$),
  ('handler_version', $$ repeat('1', 240) $$),
  ('handler_version', $$ 'v1.0 (büro)' $$),
  ('content_type', $$ 'application/vnd.api+json; charset=utf-8; version="1"' $$),
  ('error', $$ '{}' $$),
  ('error', $$ '{"type": null, "message": null, "stack": null, "class": null, "at": null}' $$),
  ('error', $$ '{"type": 500, "message": {"a": 1}, "stack": ["a", "b"], "detail": [1], "more": "x"}' $$);

select plan(count(*)::integer) from sample;

select rdq.create_queue('q');
select is(e.message, null, format('%s may be %s', s.argument, s.given))
from sample s
cross join pg_temp.error_of(
  format('select rdq.submit(queue => %L, handler => %L, payload => %L, %s => %s)', 'q', 'h', 'x', s.argument, s.given)) e;

select * from finish();
rollback;
