begin;
select plan(3);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
select count(*) from rdq.claim('{q}', 'tester', 3);
select pg_temp.pass('1 hour');

select is(reclaimed, 2::bigint, 'as many as it may') from rdq.tick(2);
select is(reclaimed, 1::bigint, 'then the rest') from rdq.tick(2);
select is(count(*), 3::bigint, 'each with an attempt that vanished')
from rdq.attempt
where outcome = 'LEASE_EXPIRED';

select * from finish();
rollback;
