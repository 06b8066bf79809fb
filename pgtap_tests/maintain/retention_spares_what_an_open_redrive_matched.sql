begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(7);

select rdq.create_queue('q', '{"keep_dead": "1 day"}');
select rdq.create_queue('other', '{"keep_dead": "1 day"}');
select pg_temp.write_dead('q', 20);
select pg_temp.write_dead('other', 2);
select * from rdq.redrive_where('q', per_second => 0.001) \gset
select pg_temp.pass('2 days');
select rdq.pause_redrive(:'redrive_id');

select is(t.purged, 2::bigint, 'only the other queue loses what is old') from rdq.tick() t;
select is(count(*), 19::bigint, 'what the redrive matched stays') from rdq.dead where queue = 'q';
select rdq.resume_redrive(:'redrive_id');
select is(t.purged, 0::bigint, 'while it runs') from rdq.tick() t;
select rdq.pause_redrive(:'redrive_id');
select is(t.purged, 0::bigint, 'while it is paused') from rdq.tick() t;
select count(*) as left from rdq.dead where queue = 'q' \gset
select ok(:left >= 18, 'all that it has not sent are there');
select rdq.cancel_redrive(:'redrive_id');
select is(t.purged, :left::bigint, 'when it is over they go') from rdq.tick() t;
select is(count(*), 0::bigint, 'all of them') from rdq.dead;

select * from finish();
rollback;
