begin;
select plan(6);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

select is(pg_temp.fail_one('q'), 'PENDING', 'the first of three attempts fails');
select pg_temp.pass('1 day');
select is(pg_temp.fail_one('q'), 'PENDING', 'the second');
select pg_temp.pass('1 day');
select is(pg_temp.fail_one('q'), 'DEAD', 'and the third is the last');
select is(row(dead_reason, attempt_count)::text, '(EXHAUSTED,3)', 'the budget is used up') from rdq.tasks;
select is(pg_temp.history_of(:'task'), '1 TRANSIENT, 2 TRANSIENT, 3 TRANSIENT', 'and all of it is in the history');
select pg_temp.pass('1 year');
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'it is never claimed again');

select * from finish();
rollback;
