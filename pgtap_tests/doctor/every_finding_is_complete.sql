-- Every trouble that one session can make, at once: each is told in whole sentences, the worst first, and each
-- advice that is SQL can be pasted.
begin;
\ir ../helpers/common.psql
\ir ../helpers/doctor.psql
\ir ../helpers/time.psql

select rdq.create_queue(q.name, '{"keep_succeeded": "1 day", "keep_dead": "1 day"}')
from unnest('{idle,busy,paused,rested,lost,it''s}'::text[]) q (name) where q.name !~ '''';
select rdq.submit(q.name, 'h', 'x') from unnest('{idle,busy,paused,lost}'::text[]) q (name) cross join generate_series(1, 3);
select rdq.complete(c.task_id, c.claim_token) from pg_temp.claim_one('busy') c;
select count(*) from rdq.claim('{busy}', E'\e[31mname''; drop table x; --', lease => '1 minute');
select pg_temp.write_dead('busy', 30);
select rdq.pause_queue(q.name, E'a reason''\n; drop table x; --') from unnest('{paused,rested}'::text[]) q (name);
select rdq.pause_redrive(r.redrive_id, E'a reason''\n; drop table x; --') from rdq.redrive_where(queue => 'busy', per_second => 0.001) r;
select pg_temp.pass('3 days');
select rdq.runner_seen(E'\e[31mname''; drop table x; --', 'h', '99.0.0', E'\e[31mname''; drop table x; --', '{busy}');
select rdq.runner_seen('r', 'h', rdq.version(), 'v1', '{busy}');
delete from rdq.queue q where q.queue = 'lost';
delete from rdq.task t where t.id = (select d.task_id from rdq.due d where d.queue = 'idle' limit 1);
delete from rdq.due d where d.task_id = (select d.task_id from rdq.due d join rdq.task t on t.id = d.task_id where d.queue = 'idle' limit 1);
insert into rdq.lease (task_id, claim_token, queue, life, runner, claimed_at, expires_at)
select d.task_id, gen_random_uuid(), 'paused', 0, 'r', clock_timestamp(), '2999-01-01' from rdq.due d where d.queue = 'paused' limit 1;
create role "rdq_test_it's";
select rdq.grant_access('rdq_test_it''s', 'viewer', array['it''s', 'a,b']);
revoke select on rdq.tasks from "rdq_test_it's";
alter role "rdq_test_it's" set statement_timeout = '1s';
grant execute on function rdq.version() to public;
set local default_transaction_isolation = 'serializable';
set local default_transaction_read_only = on;
set local statement_timeout = '4s';

create temporary table told as
select d.*, d.advice !~ '^rdq-runner ' as is_sql, row_number() over () as place from rdq.doctor(deep => true) d;
select plan(8 + count(*) filter (where t.is_sql)::integer) from told t;

select cmp_ok(count(*), '>=', 20::bigint, 'there are many') from told t;
select is(
  (select array_agg(t.severity order by t.place) from told t),
  (select array_agg(t.severity order by array_position('{error,warning,info}', t.severity)) from told t), 'the worst first');
select is_empty($$ select * from told t where coalesce(t.severity, '') not in ('info', 'warning', 'error') $$, 'each has a severity');
select is_empty($$ select * from told t where coalesce(t.subject, '') = '' $$, 'a subject');
select is_empty($$ select * from told t where coalesce(length(t.finding), 0) < 15 or t.finding ~ '%|  |\( ' $$, 'words that are complete');
select is_empty($$ select * from told t where coalesce(length(t.advice), 0) < 15 $$, 'an advice');
select is_empty($$ select * from told t where concat(t.subject, t.finding, t.advice) ~ '[[:cntrl:]]' $$, 'a line each');
select is_empty($$ select * from told t where t.advice ~ 'drop table' $$, 'nothing that others wrote is in what is pasted');

select lives_ok(t.advice, t.subject || ': ' || t.advice) from told t where t.is_sql order by t.place;

select * from finish();
rollback;
