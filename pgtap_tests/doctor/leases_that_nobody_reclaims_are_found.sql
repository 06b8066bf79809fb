begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/doctor.psql
select plan(6);

select rdq.create_queue('q', '{"lease": "1 minute"}');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
select count(*) from rdq.claim(array['q'], 'tester', 2);
select count(*) from rdq.claim(array['q'], 'tester', lease => '1 hour');
select is(pg_temp.found('q'), null, 'tasks that are held');
select pg_temp.pass('80 seconds');
select is(pg_temp.found('q'), null, 'leases that have just expired');
select pg_temp.pass('20 seconds');
select matches(
  pg_temp.found('q'), '^warning: 2 leases have expired without being reclaimed, the first 4\d seconds ago$', 'for longer');
select is(d.advice ~ '^select \* from rdq.reclaim\(', true, 'the advice') from rdq.doctor() d where d.subject = 'q';
select rdq.pause_queue('q');
select matches(pg_temp.found('q'), '^warning: 2 leases', 'in a paused queue too');
select count(*) from rdq.reclaim();
select is(pg_temp.found('q'), null, 'reclaimed all is well');

select * from finish();
rollback;
