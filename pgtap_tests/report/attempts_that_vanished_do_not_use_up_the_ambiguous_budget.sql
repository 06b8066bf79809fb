begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"ambiguous_attempts": 2, "vanish_limit": 3}');
select rdq.submit('q', 'h', 'x') as task \gset

select is(pg_temp.vanish_one('q'), 'PENDING', 'an attempt vanishes');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'PENDING', 'another');
select pg_temp.pass('1 day');
select is(pg_temp.fail_one('q', 'AMBIGUOUS'), 'PENDING', 'the first ambiguous failure is one of two');
select pg_temp.pass('1 day');
select is(pg_temp.fail_one('q', 'AMBIGUOUS'), 'DEAD', 'the second is the last');

select * from finish();
rollback;
