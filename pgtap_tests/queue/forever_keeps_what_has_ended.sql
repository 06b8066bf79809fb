begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(3);

select rdq.create_queue('q', '{"keep_succeeded": "forever", "keep_dead": "forever"}');
select rdq.submit('q', 'h', 'x') as done \gset
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as dead \gset
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select rdq.submit('q', 'h', 'x', run_at => clock_timestamp()) as waits \gset

select pg_temp.pass('99 years');
select is(t.purged, 0::bigint, 'a tick deletes nothing') from rdq.tick() t;
select is(
  array[pg_temp.status_of(:'done'), pg_temp.status_of(:'dead')], array['SUCCEEDED', 'DEAD'], 'both are kept');
select is(pg_temp.status_of(:'waits'), 'PENDING', 'without a deadline a task waits for ever');

select * from finish();
rollback;
