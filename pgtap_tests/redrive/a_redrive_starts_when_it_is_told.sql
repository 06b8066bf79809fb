begin;
\ir ../helpers/common.psql
select plan(12);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select pg_temp.stored() as before \gset

select is(e.code, 'RD002', format('must not be: %s', s.given))
from (values
  ($$ run_at => 'infinity' $$), ($$ run_at => '-infinity' $$), ($$ give_up_at => 'infinity' $$),
  ($$ give_up_at => '2001-01-01' $$), ($$ run_at => '2999-01-02', give_up_at => '2999-01-01' $$),
  ($$ run_at => '294276-12-31' $$), ($$ give_up_at => '294276-12-31' $$)
) s (given)
cross join pg_temp.error_of(format('select rdq.redrive(%L, %s)', :'id', s.given)) e;
select is(pg_temp.stored(), :'before', 'nothing changed');

select is(r.next_attempt_at, '2999-01-01 00:00Z', 'run_at') from rdq.redrive(:'id', run_at => '2999-01-01 00:00Z') r;
select is_empty($$ select * from rdq.claim(array['q'], 'tester') $$, 'not before');
select rdq.cancel(:'id');
select clock_timestamp() as before \gset
select ok(r.next_attempt_at between :'before' and clock_timestamp(), 'what is past is now')
from rdq.redrive(:'id', run_at => '2001-01-01') r;
select is(count(*), 1::bigint, 'and can be claimed') from rdq.claim(array['q'], 'tester');

select * from finish();
rollback;
