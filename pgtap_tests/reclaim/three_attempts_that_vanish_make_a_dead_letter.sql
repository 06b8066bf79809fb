-- A task that kills its process each time: exactly three attempts, and no fourth start.
begin;
select plan(10);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

select is(pg_temp.vanish_one('q'), 'PENDING', 'the first attempt vanishes');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'PENDING', 'the second');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'DEAD', 'the third is the last');
select is(
  row(status, dead_reason, attempt_count)::text, '(DEAD,VANISHED,3)', 'the reason says that the worker was lost'
)
from rdq.tasks;
select is(
  pg_temp.history_of(:'task'), '1 LEASE_EXPIRED, 2 LEASE_EXPIRED, 3 LEASE_EXPIRED', 'the three are numbered 1 to 3'
);
select is(
  row(dead_reason, error_type, attempts)::text, '(VANISHED,LEASE_EXPIRED,3)', 'the dead letter says what was seen'
)
from rdq.dead_letters;
select pg_temp.pass('1 year');
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'there is no fourth start');

-- A large budget does not matter: three in a row say enough.
select rdq.submit('q', 'h', 'x', max_attempts => 100) as other \gset
select pg_temp.vanish_one('q');
select pg_temp.pass('1 day');
select pg_temp.vanish_one('q');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'DEAD', 'a task with a hundred attempts vanishes three times too');
select is(row(dead_reason, attempt_count)::text, '(VANISHED,3)', 'and is dead')
from rdq.tasks
where task_id = :'other';
select is(count(*), 0::bigint, 'no lease is left') from rdq.lease;

select * from finish();
rollback;
