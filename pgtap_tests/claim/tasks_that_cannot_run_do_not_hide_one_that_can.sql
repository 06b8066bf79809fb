-- A claim of one task meets two that are past their deadline before it: an empty answer would tell a worker
-- that there is nothing to do.
begin;
select plan(3);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'late', 'x', give_up_at => clock_timestamp() + interval '1 hour')
from generate_series(1, 2);
select rdq.submit('q', 'fine', 'x');
select pg_temp.pass('2 hours');

select is(handler, 'fine', 'the claim returns the one that can run') from rdq.claim('{q}', 'tester', 1);
select is(count(*), 2::bigint, 'and the others are dead letters')
from rdq.dead_letters
where dead_reason = 'DEADLINE';
select is(count(*), 1::bigint, 'one lease is out') from rdq.lease;

select * from finish();
rollback;
