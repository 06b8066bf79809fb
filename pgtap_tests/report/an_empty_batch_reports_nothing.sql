begin;
select plan(4);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x');
select * from pg_temp.claim_one('q') \gset
select pg_temp.stored() as before \gset

select is_empty($$ select * from rdq.report('{}', '{}', '{}') $$, 'no reports have no answers');
select is_empty($$ select rdq.release('{}', '{}') $$, 'no releases neither');
select is_empty($$ select rdq.heartbeat('{}', '{}') $$, 'nor heartbeats');
select is(pg_temp.stored(), :'before', 'nothing has changed');

select * from finish();
rollback;
