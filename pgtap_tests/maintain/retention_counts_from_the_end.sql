-- Trouble case E6: a task that was tried for weeks is kept as long as one that ended at once.
begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(9);

select rdq.create_queue('q', '{"keep_dead": "14 days", "keep_succeeded": "1 day", "ladder": [0], "max_attempts": 9}');

select rdq.submit('q', 'h', 'x') as dead \gset
select rdq.submit('q', 'h', 'x') as done \gset
create temporary table held as select * from rdq.claim(array['q'], 'tester', max_tasks => 2);
select rdq.fail(h.task_id, h.claim_token, 'E', error_class => 'TRANSIENT') from held h;
select pg_temp.pass('30 days');
truncate held;
insert into held select * from rdq.claim(array['q'], 'tester', max_tasks => 2);
select rdq.fail(h.task_id, h.claim_token, 'E', error_class => 'PERMANENT') from held h where h.task_id = :'dead';
select rdq.complete(h.task_id, h.claim_token) from held h where h.task_id = :'done';
select pg_temp.pass('1 minute');

select is(t.purged, 0::bigint, 'submitted 30 days ago, ended a minute ago') from rdq.tick() t;
select is(array[pg_temp.status_of(:'dead'), pg_temp.status_of(:'done')], '{DEAD,SUCCEEDED}', 'both are kept');
select pg_temp.pass('23 hours 58 minutes');
select is(t.purged, 0::bigint, 'not yet a day') from rdq.tick() t;
select pg_temp.pass('1 hour 2 minutes');
select is(t.purged, 1::bigint, 'a day later, and an hour for the batch') from rdq.tick() t;
select is(array[pg_temp.status_of(:'dead'), pg_temp.status_of(:'done')], '{DEAD,null}', 'what succeeded is gone');
select is(count(*), 0::bigint, 'its attempts too') from rdq.attempt a where a.task_id = :'done';
select pg_temp.pass('13 days');
select is(t.purged, 1::bigint, 'two weeks later') from rdq.tick() t;
select is(pg_temp.status_of(:'dead'), null, 'the dead letter is gone');
select is(count(*), 0::bigint, 'nothing is left of either') from rdq.attempt;

select * from finish();
rollback;
