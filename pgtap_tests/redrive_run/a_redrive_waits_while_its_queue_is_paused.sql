begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(10);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 100);
select * from rdq.redrive_where(queue => 'q', per_second => 2) \gset
select is(:'sent'::text, '21', 'what is due within ten seconds is sent');
select rdq.pause_queue('q');
select pg_temp.pass('10 minutes');
select is(t.redriven, 0::bigint, 'while the queue is paused nothing is') from rdq.tick() t;
select is(s.state, 'RUNNING', 'it goes on') from rdq.redrive_status(:'redrive_id') s;
select rdq.resume_queue('q');
select is(t.redriven, 21::bigint, 'when it is resumed, at its pace') from rdq.tick() t;

select rdq.pause_queue('q');
select * from rdq.redrive_where(queue => 'q', canary => 3) \gset
select is(array[:'state', :'sent'], '{RUNNING,0}', 'one that begins meanwhile waits too');
select rdq.pause_redrive(:'redrive_id');
select rdq.cancel_redrive(:'redrive_id');
select rdq.resume_queue('q');
select * from rdq.redrive_where(queue => 'q', canary => 3) \gset
select is(:'sent'::text, '3', 'in an open queue its canary is sent at once');


-- A tick carries on one of those that run, by chance.
select rdq.cancel_redrive(r.redrive_id) from rdq.redrives r where r.state = 'RUNNING';
select rdq.create_queue('r');
select rdq.purge(d.task_id) from rdq.dead d;
select pg_temp.write_dead('q', 3);
select pg_temp.write_dead('r', 3);
select pg_temp.write_dead('q', 3);
select rdq.pause_queue('r');
select * from rdq.redrive_where(since => '-infinity') \gset
select is(array[:'state', :'matched', :'sent'], '{RUNNING,9,3}', 'one of many queues goes on to the first that is in a paused one');
select rdq.resume_queue('r');
select is(t.redriven, 6::bigint, 'and from there when that is resumed') from rdq.tick() t;
select rdq.pause_queue('r');
select rdq.cancel(d.task_id) from rdq.due d where d.queue = 'r';
select * from rdq.redrive_where(since => '-infinity', canary => 2) \gset
select is(array[:'state', :'sent'], '{RUNNING,0}', 'where all are in a paused queue the canary waits as well');
select rdq.resume_queue('r');
select rdq.tick();
select is(array[s.sent::text, s.canary_out::text], '{2,true}', 'it is not left out') from rdq.redrive_status(:'redrive_id') s;

select * from finish();
rollback;
