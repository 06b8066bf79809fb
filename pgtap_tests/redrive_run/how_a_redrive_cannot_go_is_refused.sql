begin;
\ir ../helpers/common.psql
select plan(17);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 3);
select pg_temp.stored() as before \gset
select is(e.code, 'RD002', format('must not be: %s: %s', s.given, e.message))
from (values
  ($$ spread => '-1 second' $$), ($$ spread => '2 years' $$), ($$ per_second => 0 $$), ($$ per_second => -1 $$),
  ($$ per_second => 'NaN' $$), ($$ per_second => 'infinity' $$), ($$ spread => '1 hour', per_second => 1 $$),
  ($$ canary => -1 $$), ($$ canary => 1001 $$), ($$ halt_at => 0 $$), ($$ halt_at => 1.01 $$), ($$ halt_at => -0.1 $$),
  ($$ halt_at => 'NaN' $$), ($$ halt_min => 0 $$), ($$ halt_min => null $$)
) s (given)
cross join pg_temp.error_of(format('select * from rdq.redrive_where(queue => %L, %s)', 'q', s.given)) e;
select is(pg_temp.stored(), :'before', 'nothing changed');
select is(array[r.state, r.sent::text], '{DONE,3}', 'no canary, and a share of all, are possible')
from rdq.redrive_where(queue => 'q', canary => 0, halt_at => 1, halt_min => 1) r;

select * from finish();
rollback;
