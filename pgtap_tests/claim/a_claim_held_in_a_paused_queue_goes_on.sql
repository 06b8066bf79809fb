begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
create temp table held as select *, row_number() over () as place from rdq.claim('{q}', 'tester', 3);
select rdq.pause_queue('q');

select ok(rdq.complete(task_id, claim_token), 'an attempt that is running may complete')
from held
where place = 1;
select is(f.status, 'PENDING', 'or fail')
from held
cross join lateral rdq.fail(task_id, claim_token, 'Down') f
where place = 2;
select is(rdq.heartbeat(array[task_id], array[claim_token]), task_id, 'or go on') from held where place = 3;
select pg_temp.pass('1 day');
select is(status, 'PENDING', 'and one that has vanished is taken back') from rdq.reclaim(queues => '{q}');

select * from finish();
rollback;
