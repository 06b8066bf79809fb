begin;
\ir ../helpers/common.psql

create temporary table sample (argument text, given text, code text);
insert into sample values
  ('handler', $$ null $$, 'RD002'),
  ('handler', $$ '' $$, 'RD002'),
  ('handler', $$ 'Charge' $$, 'RD002'),
  ('payload', $$ null $$, 'RD002'),
  ('payload', $$ null::bytea $$, 'RD002'),
  ('payload', $$ null::json $$, 'RD002'),
  ('payload', $$ null::jsonb $$, 'RD002'),
  ('headers', $$ '[]' $$, 'RD002'),
  ('headers', $$ '"x"' $$, 'RD002'),
  ('headers', $$ '{"a": 1}' $$, 'RD002'),
  ('headers', $$ '{"a": null}' $$, 'RD002'),
  ('headers', $$ '{"a": {"b": "c"}}' $$, 'RD002'),
  ('headers', $$ '{"a": ["b"]}' $$, 'RD002'),
  ('headers', $$ '{"rdq.id": "b"}' $$, 'RD002'),
  ('headers', $$ '{"a": "b", "rdq.": "b"}' $$, 'RD002'),
  ('headers', $$ jsonb_build_object('a', repeat('b', 17000)) $$, 'RD002'),
  ('run_at', $$ 'infinity' $$, 'RD002'),
  ('run_at', $$ '-infinity' $$, 'RD002'),
  ('give_up_at', $$ 'infinity' $$, 'RD002'),
  ('give_up_at', $$ '-infinity' $$, 'RD002'),
  ('max_attempts', $$ 0 $$, 'RD002'),
  ('max_attempts', $$ -1 $$, 'RD002'),
  ('max_attempts', $$ 10001 $$, 'RD002'),
  ('dedupe_key', $$ '' $$, 'RD002'),
  ('dedupe_key', $$ repeat('k', 65537) $$, 'RD002'),
  ('handler_version', $$ repeat('1', 241) $$, 'RD002'),
  ('content_type', $$ '' $$, 'RD002'),
  ('content_type', $$ E'text/plain\r\nx-evil: 1' $$, 'RD002'),
  ('content_type', $$ repeat('a', 241) $$, 'RD002'),
  ('error', $$ '[]' $$, 'RD002'),
  ('error', $$ '"broken"' $$, 'RD002'),
  ('error', $$ '3' $$, 'RD002'),
  ('error', $$ '{"class": "transient"}' $$, 'RD002'),
  ('error', $$ '{"class": "FATAL"}' $$, 'RD002'),
  ('error', $$ '{"class": 1}' $$, 'RD002'),
  ('error', $$ '{"at": "yesterday-ish"}' $$, 'RD002'),
  ('error', $$ '{"at": "infinity"}' $$, 'RD002'),
  ('error', $$ '{"at": true}' $$, 'RD002');

select plan(3 * count(*)::integer + 5) from sample;

select rdq.create_queue('q');
select pg_temp.stored() as before \gset

create temporary table refused as
select s.*, e.message, e.hint, e.code as have
from sample s
cross join pg_temp.error_of(
  case when s.argument in ('handler', 'payload')
    then format('select rdq.submit(queue => %L, %s => %s, %s)', 'q', s.argument, s.given,
      case s.argument when 'handler' then $$payload => 'x'$$ else $$handler => 'h'$$ end)
    else format('select rdq.submit(queue => %L, handler => %L, payload => %L, %s => %s)', 'q', 'h', 'x', s.argument, s.given)
  end) e;
select is(r.have, r.code, format('%s must not be %s', r.argument, r.given)) from refused r;
select ok(r.message like '%' || r.argument || '%', format('the message names %s: %s', r.argument, r.message))
from refused r;
select ok(length(r.hint) > 20, format('a hint says what to do: %s', r.hint)) from refused r;

select throws_ok(
  $$ select rdq.submit('q', 'h', 'x', run_at => '2999-01-02', give_up_at => '2999-01-01') $$, 'RD002', null,
  'a start after the deadline');
select throws_ok($$ select rdq.submit(null, 'h', 'x') $$, 'RD001', null, 'no queue');
select throws_ok($$ select rdq.submit('Q', 'h', 'x') $$, 'RD001', null, 'a queue that cannot exist');
select throws_ok(
  format($$ select rdq.submit(%L, 'h', 'x') $$, repeat('q', 300)), 'RD001', null, 'a queue with 300 characters');
select is(pg_temp.stored(), :'before', 'nothing was stored');

select * from finish();
rollback;
