begin;
select plan(3);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('short', '{"max_attempts": 1}');
select rdq.submit('short', 'h', 'x', max_attempts => 2) as task \gset
select is(pg_temp.fail_one('short'), 'PENDING', 'a task that was given two attempts has two');
select pg_temp.pass('1 day');
select is(pg_temp.fail_one('short'), 'DEAD', 'and no more');

select rdq.create_queue('long', '{"max_attempts": 8}');
select rdq.submit('long', 'h', 'x', max_attempts => 1);
select is(pg_temp.fail_one('long'), 'DEAD', 'a task that was given one attempt has one');

select * from finish();
rollback;
