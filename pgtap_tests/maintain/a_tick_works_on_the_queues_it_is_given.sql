begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(4);

select rdq.create_queue(q.name, '{"keep_dead": "10 minutes"}') from (values ('a'), ('b')) q (name);
select pg_temp.write_dead(q.name, 1) from (values ('a'), ('b')) q (name);
select rdq.submit(q.name, 'h', 'held') from (values ('a'), ('b')) q (name);
select count(*) from rdq.claim(array['a', 'b'], 'tester', max_tasks => 99);
select rdq.submit(q.name, 'h', 'late', give_up_at => clock_timestamp() + interval '1 minute')
from (values ('a'), ('b')) q (name);
select pg_temp.pass('30 minutes');

select is(t::text, '(1,1,0,1,)', 'one of two') from rdq.tick(queues => array['a']) t;
select is(count(*), 3::bigint, 'the other is as it was')
from rdq.tasks t
where t.queue = 'b' and (t.status, t.finished_at is null) in (('PENDING', true), ('IN_FLIGHT', true), ('DEAD', false));
select is(t::text, '(1,1,0,1,)', 'by default all') from rdq.tick() t;
select throws_ok(
  $$ select * from rdq.tick(queues => array['a', 'none']) $$, 'RD001', null, 'an unknown queue is refused');

select * from finish();
rollback;
