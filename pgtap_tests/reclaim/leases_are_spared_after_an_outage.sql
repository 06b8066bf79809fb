begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(12);

select rdq.create_queue('q', '{"lease": "1 minute", "vanish_limit": 100}');
select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('90 seconds');

-- Its lease has ended half a minute ago.
select is_empty($$ select * from rdq.reclaim(10, spare => '1 minute') $$, 'a reclaim spares what ended within that time');
select is(t.reclaimed, 0::bigint, 'so does a tick') from rdq.tick(spare => '1 minute') t;
select is_empty($$ select * from rdq.claim('{q}', 'tester', spare => '1 minute') $$, 'and a claim');
select is(pg_temp.status_of(:'id'), 'IN_FLIGHT', 'it is still held');
select is(r.status, 'PENDING', 'what ended before is taken back') from rdq.reclaim(10, spare => '10 seconds') r;

select pg_temp.pass('1 hour');
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('2 days');
select is(r.status, 'PENDING', 'nobody is spared for more than a day') from rdq.reclaim(10, spare => '10 years') r;

-- As if the server had just started. Plans keep what an immutable function returned.
select pg_temp.pass('1 hour');
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('2 hours');
create or replace function rdq._restart_grace() returns interval language sql immutable return interval '1000 years';
discard plans;
select is_empty($$ select * from rdq.reclaim() $$, 'after a start of the server, leases from before are left alone');
select is(t.reclaimed, 0::bigint, 'by a tick too') from rdq.tick() t;
select is_empty($$ select * from rdq.claim('{q}', 'tester') $$, 'and by a claim');
select is(rdq.complete(:'task_id', :'claim_token'), true, 'its holder can say that it has finished');
create or replace function rdq._restart_grace() returns interval language sql immutable return interval '0';
discard plans;
select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('2 hours');
select is(r.status, 'PENDING', 'later they are taken back') from rdq.reclaim() r;
select is(pg_temp.status_of(:'id'), 'PENDING', 'and wait again');

select * from finish();
rollback;
