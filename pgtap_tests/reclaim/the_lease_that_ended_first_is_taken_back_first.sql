begin;
select plan(3);
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
create temp table held as
select c.task_id, l.place
from unnest('{20 minutes, 10 minutes, 30 minutes}'::interval[]) with ordinality as l (lease, place)
cross join lateral rdq.claim('{q}', 'tester', lease => l.lease) c;
select pg_temp.pass('1 hour');

select is(place, 2::bigint, 'the one that ended after ten minutes') from rdq.reclaim(1) join held using (task_id);
select is(place, 1::bigint, 'then the one of twenty') from rdq.reclaim(1) join held using (task_id);
select is(place, 3::bigint, 'then the last') from rdq.reclaim(1) join held using (task_id);

select * from finish();
rollback;
