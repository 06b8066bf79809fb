begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(3);

select rdq.create_queue('a', '{"keep_dead": "1 day"}');
select rdq.create_queue('b', '{"keep_dead": "3 days"}');
select pg_temp.write_dead('a', 5);
select pg_temp.write_dead('b', 3);
select pg_temp.pass('2 days');

select is(t.purged, 4::bigint, 'a batch') from rdq.tick(max_tasks => 4) t;
select is(t.purged, 1::bigint, 'the rest') from rdq.tick(max_tasks => 4) t;
select pg_temp.pass('2 days');
select rdq.tick();
select pg_temp.rows_are(
  $$ select queue, affected, reason is not null from rdq.audit_log where action = 'retention' order by id $$,
  $$ values ('a', 4::bigint, true), ('a', 1, true), ('b', 3, true) $$,
  'each batch is a row that says of which queue and how many');

select * from finish();
rollback;
