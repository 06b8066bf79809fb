begin;
\ir ../helpers/common.psql

create temporary table sample (given text);
insert into sample values
  (''), (' '), ('x'), ('2026-01-31'), ('01890000-0000-7000-8000-000000000001'), ('2026-01-31 x'),
  ('x 01890000-0000-7000-8000-000000000001'), ('2026-01-31T12:00:00+00:00 '), (repeat('x', 10000));

select plan(2 * count(*)::integer + 1) from sample;

select rdq.create_queue('q');
create temporary table refused as
select s.given, e.*
from sample s
cross join pg_temp.error_of(format('select * from rdq.dead_letters(after => %L)', s.given)) e;
select is(r.code, 'RD002', format('after => %s', quote_literal(left(r.given, 60)))) from refused r;
select ok(r.hint like '%page%', 'the hint names the column') from refused r;

select lives_ok($$ select * from rdq.dead_letters(after => null) $$, 'null is the first page');

select * from finish();
rollback;
