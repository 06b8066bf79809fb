begin;
select plan(8);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 2);
create temp table held as select *, row_number() over () as place from rdq.claim('{q}', 'tester', 2);
select pg_temp.pass('1 day');

-- Completed, then reclaimed.
select ok(rdq.complete(task_id, claim_token), 'a completion after the lease has ended')
from held
where place = 1;
select is(string_agg(place::text, ','), '2', 'leaves nothing of that task to take back')
from rdq.reclaim()
join held using (task_id);
select is(pg_temp.status_of(task_id), 'SUCCEEDED', 'it has succeeded') from held where place = 1;
select is(pg_temp.history_of(task_id), '1 SUCCEEDED', 'with no attempt that vanished')
from held
where place = 1;

-- Reclaimed, then completed.
select ok(not rdq.complete(task_id, claim_token), 'a completion after the reclaim is refused')
from held
where place = 2;
select is(pg_temp.status_of(task_id), 'PENDING', 'the task waits for another attempt')
from held
where place = 2;
select is(pg_temp.history_of(task_id), '1 LEASE_EXPIRED (late SUCCEEDED)', 'and one attempt has vanished')
from held
where place = 2;

select is_empty($$ select * from rdq.reclaim() $$, 'a second reclaim finds nothing');

select * from finish();
rollback;
