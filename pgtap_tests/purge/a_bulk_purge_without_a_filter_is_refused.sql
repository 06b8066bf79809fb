begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 2);
select pg_temp.stored() as before \gset

select is(e.code, 'RD002', s.statement)
from (values
  ('select * from rdq.purge_where()'),
  ('select * from rdq.purge_where(queue => null, reason => ''all'')'),
  ('select * from rdq.purge_where(dry_run => true)')
) s (statement)
cross join pg_temp.error_of(s.statement) e;
select ok(pg_temp.hint_of('select * from rdq.purge_where()') like '%queue%', 'the hint says what to name');
select is(pg_temp.stored(), :'before', 'nothing changed');
select is(p.purged, 2::bigint, 'everything can be said') from rdq.purge_where(since => '-infinity') p;

select * from finish();
rollback;
