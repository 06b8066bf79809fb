-- The token decides, not the clock.
begin;
select plan(9);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"lease": "1 minute"}');
select rdq.submit('q', 'h', 'x') from generate_series(1, 4);
create temp table held as select *, row_number() over () as place from rdq.claim('{q}', 'tester', 4);
select pg_temp.pass('1 year');

select ok(rdq.complete(task_id, claim_token), 'a completion a year late') from held where place = 1;
select is(pg_temp.history_of(task_id), '1 SUCCEEDED', 'is a success') from held where place = 1;

select ok(not f.stale, 'a failure a year late')
from held
cross join lateral rdq.fail(task_id, claim_token, 'Down', error_class => 'TRANSIENT') f
where place = 2;
select is(pg_temp.history_of(task_id), '1 TRANSIENT', 'is that failure') from held where place = 2;

select is(r, task_id, 'a release a year late')
from held
cross join lateral rdq.release(array[task_id], array[claim_token]) r
where place = 3;
select is(pg_temp.history_of(task_id), '1 RELEASED', 'is a release') from held where place = 3;

select is(r, task_id, 'a heartbeat a year late')
from held
cross join lateral rdq.heartbeat(array[task_id], array[claim_token]) r
where place = 4;
select is_empty($$ select * from rdq.reclaim() $$, 'keeps the claim');
select ok(expires_at between clock_timestamp() + interval '30 s' and clock_timestamp() + interval '60 s', 'for a lease from now')
from rdq.lease;

select * from finish();
rollback;
