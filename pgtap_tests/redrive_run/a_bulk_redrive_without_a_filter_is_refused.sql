begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}');
select pg_temp.stored() as before \gset

select is(e.code, 'RD002', s.statement)
from (values
  ('select * from rdq.redrive_where()'),
  ('select * from rdq.redrive_where(queue => null, handler => null, reason => ''all'')'),
  ('select * from rdq.redrive_where(spread => ''1 hour'')')
) s (statement)
cross join pg_temp.error_of(s.statement) e;
select ok(pg_temp.hint_of('select * from rdq.redrive_where()') like '%queue%', 'the hint says what to name');
select throws_ok($$ select * from rdq.redrive_where(queue => 'none') $$, 'RD001', null, 'an unknown queue');
select is(pg_temp.stored(), :'before', 'nothing changed');

select * from finish();
rollback;
