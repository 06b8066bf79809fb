begin;
\ir ../helpers/common.psql
select plan(1);

select rdq.create_queue('q', '{"ladder": [0]}');
select count(*) as before from rdq.audit \gset
select rdq.submit('q', 'h', 'x');
select * from pg_temp.claim_one('q') \gset
select rdq.heartbeat(array[:'task_id'::uuid], array[:'claim_token'::uuid]);
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT');
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select rdq.tick();

select is(count(*), :'before'::bigint, 'work is in the history, the audit is for operators') from rdq.audit;

select * from finish();
rollback;
