begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(9);

select rdq.create_queue('q', '{"keep_succeeded": "10 minutes", "keep_dead": "20 minutes", "ladder": [0]}');
select is(t::text, '(0,0,0,0,)', 'of nothing nothing') from rdq.tick() t;

select rdq.submit('q', 'h', 'done') as done \gset
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select rdq.submit('q', 'h', 'dead', error => '{"class": "PERMANENT"}') as dead \gset
select rdq.submit('q', 'h', 'held') as held \gset
select * from pg_temp.claim_one('q') \gset
select rdq.submit('q', 'h', 'late', give_up_at => clock_timestamp() + interval '1 minute') as late \gset
select rdq.submit('q', 'h', 'waits') as waits \gset
select pg_temp.pass('30 minutes');
select rdq.pause_queue('q');

select is(t::text, '(1,1,0,2,)', 'a lease taken back, a deadline kept, two let go; in a paused queue too')
from rdq.tick(max_tasks => 100, queues => array['q']) t;
select is(pg_temp.status_of(:'done'), null, 'what succeeded is gone');
select is(pg_temp.status_of(:'dead'), null, 'the dead letter is gone');
select is(pg_temp.status_of(:'held'), 'PENDING', 'what was held waits');
select is(h.outcome, 'LEASE_EXPIRED', 'and has an attempt more') from rdq.history(:'held') h;
select is(t.dead_reason, 'DEADLINE', 'what was late is dead') from rdq.tasks t where t.task_id = :'late';
select is(pg_temp.status_of(:'waits'), 'PENDING', 'what had no deadline waits');
select is(t::text, '(0,0,0,0,)', 'the next one has nothing to do') from rdq.tick() t;

select * from finish();
rollback;
