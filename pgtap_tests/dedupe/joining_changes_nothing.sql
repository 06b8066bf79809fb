begin;
\ir ../helpers/common.psql
select plan(4);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as id \gset
select pg_temp.stored() as before \gset

select is(
  rdq.submit('q', 'other', 'y', headers => '{"a": "b"}', run_at => '2999-01-01', max_attempts => 1, dedupe_key => 'k',
    error => '{"class": "PERMANENT"}', task_id => '01890000-0000-7000-8000-000000000001'),
  :'id', 'whatever else the call says, it joins');
select is(pg_temp.stored(), :'before', 'and changes nothing');
select is(pg_temp.status_of('01890000-0000-7000-8000-000000000001'), null, 'its own id names no task');

select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select is(
  rdq.submit('q', 'h', 'y', dedupe_key => 'k', task_id => '01890000-0000-7000-8000-000000000001'),
  '01890000-0000-7000-8000-000000000001', 'sent again later, it is new with its id');

select * from finish();
rollback;
