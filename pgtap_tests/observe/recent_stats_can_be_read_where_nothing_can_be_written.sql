begin;
\ir ../helpers/common.psql
\ir ../helpers/stats.psql
select plan(4);

select pg_temp.counting_is('0');
select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x');
select rdq.refresh_queue_stats();
update rdq.queue_count set took = '1 hour';
select rdq.submit('q', 'h', 'x');
savepoint counted;

set transaction read only;
select is(pg_temp.told('q'), '1 0 0 0 0', 'what is stored is told');
rollback to counted;

delete from rdq.queue_count;
set transaction read only;
select is(pg_temp.told('q'), '2 0 0 0 0 recount', 'where nothing is stored, it counts');
select lives_ok('select rdq.refresh_queue_stats()', 'a recount does no harm');
select is_empty('select from rdq.queue_count', 'and stores nothing');

select * from finish();
rollback;
