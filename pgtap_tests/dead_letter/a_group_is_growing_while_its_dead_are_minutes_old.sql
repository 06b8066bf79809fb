begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(5);

select rdq.create_queue('q');
create function pg_temp.die(handler text, number integer) returns void
language sql
begin atomic
  select rdq.submit('q', handler, 'x', error => '{"class": "PERMANENT"}') from generate_series(1, number);
end;

select pg_temp.die('stopped', 3);
select pg_temp.pass('4 minutes');
select pg_temp.die('grows', 1);
select is(array_agg(g.growing order by g.handler), '{t,t}', 'each had one in the last five minutes')
from rdq.dead_letter_groups() g;

select pg_temp.pass('61 seconds');
select is(array_agg(g.growing order by g.handler), '{t,f}', 'one has stopped') from rdq.dead_letter_groups() g;
select is(array_agg(g.share order by g.handler), '{0.25,0.75}'::float8[], 'the shares are of all')
from rdq.dead_letter_groups() g;
select is(g.share, 1::float8, 'that match') from rdq.dead_letter_groups(handler => 'grows') g;
select is(g.share, 0.75::float8, 'not of those that are shown') from rdq.dead_letter_groups(max_rows => 1) g;

select * from finish();
rollback;
