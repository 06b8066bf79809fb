begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
select plan(8);

select rdq.create_queue(q.name) from unnest('{a,lost,z}'::text[]) q (name);
select rdq.set_endpoint(q.name, 'h', 'https://example.org/') from unnest('{a,lost}'::text[]) q (name);
select rdq.submit(q.name, 'h', 'x', run_at => '2999-01-01') from unnest('{a,z}'::text[]) q (name);
delete from rdq.queue q where q.queue = 'lost';
select is(pg_temp.found('lost'), 'warning: the queue does not exist, but endpoints name it', 'an endpoint');

insert into rdq.queue select (jsonb_populate_record(q, '{"queue": "lost"}')).* from rdq.queue q where q.queue = 'a';
select is(pg_temp.found('lost'), null, 'with the queue it is well');
select rdq.submit('lost', 'h', 'x', run_at => '2999-01-01');
delete from rdq.queue q where q.queue = 'lost';
select is(pg_temp.found('lost'), 'error: the queue does not exist, but endpoints and tasks that wait name it', 'a task that waits');
delete from rdq.endpoint;
insert into rdq.lease (task_id, claim_token, queue, life, runner, claimed_at, expires_at)
select d.task_id, gen_random_uuid(), d.queue, d.life, 'r', clock_timestamp(), '2999-01-01' from rdq.due d where d.queue = 'lost';
delete from rdq.due d where d.queue = 'lost';
select is(pg_temp.found('lost'), 'error: the queue does not exist, but tasks that are held name it', 'a task that is held');
delete from rdq.lease;
insert into rdq.queue select (jsonb_populate_record(q, '{"queue": "lost"}')).* from rdq.queue q where q.queue = 'a';
select pg_temp.write_dead('lost', 1);
delete from rdq.queue q where q.queue = 'lost';
select is(pg_temp.found('lost'), 'error: the queue does not exist, but dead letters name it', 'a dead letter');
select is(count(*), 1::bigint, 'nothing is said of the others') from rdq.doctor();
select is(d.advice ~ '^select rdq.create_queue\(''lost''\);', true, 'the advice creates it') from rdq.doctor() d;
select rdq.create_queue('lost');
select is(count(*), 0::bigint, 'created again it is well') from rdq.doctor() d where d.severity <> 'info';

select * from finish();
rollback;
