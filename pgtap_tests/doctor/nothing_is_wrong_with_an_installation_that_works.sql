begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
\ir ../helpers/time.psql
select plan(4);

select is_empty($$ select * from rdq.doctor(deep => true) $$, 'a new installation');
select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01');
select rdq.submit('q', 'h', 'x') from generate_series(1, 4);
select rdq.complete(c.task_id, c.claim_token) from rdq.claim(array['q'], 'tester') c;
select count(*) from rdq.claim(array['q'], 'tester', lease => '1 hour');
select rdq.cancel(c.task_id) from rdq.claim(array['q'], 'tester') c;
select rdq.purge(d.task_id) from rdq.dead_letters d;
select rdq.runner_seen('r1', 'host', rdq.version(), 'v1');
select rdq.runner_seen('r2', 'host', 'unknown', 'v1');
create role rdq_test_viewer;
select rdq.grant_access('rdq_test_viewer', 'viewer');
select is_empty($$ select * from rdq.doctor(deep => true) $$, 'one in which tasks are in every state but dead');
select pg_temp.pass('55 seconds');
select is_empty($$ select * from rdq.doctor(deep => true) $$, 'and are due for a little while');
select pg_temp.pass('10 minutes');
select is(array_agg(d.subject), '{q}', 'only what waits too long is told') from rdq.doctor(deep => true) d;

select * from finish();
rollback;
