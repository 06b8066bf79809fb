begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(3);

select rdq.create_queue('q', '{"keep_dead": "1 day"}');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select pg_temp.pass('23 hours');
select rdq.redrive(:'id', run_at => clock_timestamp() + interval '10 hours');
select pg_temp.pass('10 hours');
select is(t.purged, 0::bigint, 'it waits') from rdq.tick() t;
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select pg_temp.pass('23 hours');
select is(t.purged, 0::bigint, 'it died again') from rdq.tick() t;
select pg_temp.pass('2 hours');
select is(t.purged, 1::bigint, 'a day after its second death it goes') from rdq.tick() t;

select * from finish();
rollback;
