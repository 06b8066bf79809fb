begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(6);

select rdq.create_queue('q',
  '{"max_attempts": 9, "ambiguous_attempts": 2, "vanish_limit": 2, "max_releases": 1, "ladder": [0]}');

select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E');
select * from pg_temp.claim_one('q') \gset
select is(f.dead_reason, 'AMBIGUOUS', 'two ambiguous failures') from rdq.fail(:'task_id', :'claim_token', 'E') f;
select rdq.redrive(:'id');
select * from pg_temp.claim_one('q') \gset
select is(f.status, 'PENDING', 'in a new life one of two') from rdq.fail(:'task_id', :'claim_token', 'E') f;
select rdq.cancel(:'id');

select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 hour');
select rdq.reclaim();
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 hour');
select is(r.status, 'DEAD', 'two expired leases in a row') from rdq.reclaim() r;
select rdq.redrive(:'id');
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 hour');
select is(r.status, 'PENDING', 'in a new life one of two') from rdq.reclaim() r;
select rdq.cancel(:'id');

select rdq.submit('q', 'h', 'x', max_attempts => 1) as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid]);
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid]);
select is(pg_temp.status_of(:'id'), 'DEAD', 'more releases than are given back');
select rdq.redrive(:'id');
select * from pg_temp.claim_one('q') \gset
select rdq.release(array[:'task_id'::uuid], array[:'claim_token'::uuid]);
select is(pg_temp.status_of(:'id'), 'PENDING', 'in a new life the first is given back');

select * from finish();
rollback;
