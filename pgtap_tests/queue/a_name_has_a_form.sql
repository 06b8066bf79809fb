begin;
\ir ../helpers/common.psql

create temporary table sample (name text, valid boolean);
insert into sample values
  ('q', true), ('0', true), ('payments.eu-1_x', true), ('a..b', true), ('q.', true), (repeat('a', 240), true),
  (null, false), ('', false), (' ', false), ('Q', false), ('payments/eu', false), ('-q', false), ('.q', false),
  ('_q', false), ('a b', false), ('q ', false), (' q', false), ('ü', false), (E'q\n', false), (E'q\nq', false),
  ('a*', false), ('a%', false), ('a''b', false), (repeat('a', 241), false), (repeat('a', 300), false);

select plan(2 * count(*)::integer + 1 + count(*) filter (where not s.valid)::integer) from sample s;

create temporary table answered as
select s.*, e.*
from sample s
cross join pg_temp.error_of(format('select rdq.create_queue(queue => %L)', s.name)) e;
select is(
  a.code, case when not a.valid then 'RD002' end,
  format('a queue %s', quote_nullable(translate(left(a.name, 20), E'\n', '$'))))
from answered a;
select ok(a.hint like '%1 to 240%', 'the hint says what a name is') from answered a where not a.valid;
select is(count(*), 6::bigint, 'the valid ones were made') from rdq.queues;

select rdq.create_queue('q');
select is(
  e.code, case when not s.valid then 'RD002' end,
  format('a handler %s', quote_nullable(translate(left(s.name, 20), E'\n', '$'))))
from sample s
cross join pg_temp.error_of(format('select rdq.submit(queue => %L, handler => %L, payload => %L)', 'q', s.name, 'x')) e;

select * from finish();
rollback;
