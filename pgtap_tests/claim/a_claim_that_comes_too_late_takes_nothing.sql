begin;
select plan(5);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x');
select pg_temp.stored() as before \gset

create temp table refused as
select e.* from pg_temp.error_of($$
  select * from rdq.claim('{q}', 'tester', not_after => clock_timestamp() - interval '1 second')
$$) e;

select is(code, 'RD009', 'a claim for which nobody waits any more is refused') from refused;
select ok(message like '%not to be answered after%', 'and says so: ' || message) from refused;
select ok(length(hint) > 10, 'with advice: ' || hint) from refused;
select is(pg_temp.stored(), :'before', 'nothing was claimed');
select is(
  (select count(*) from rdq.claim('{q}', 'tester', not_after => clock_timestamp() + interval '1 minute')),
  1::bigint, 'in time it is answered'
);

select * from finish();
rollback;
