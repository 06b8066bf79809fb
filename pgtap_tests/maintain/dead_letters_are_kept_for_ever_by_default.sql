begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(4);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 50);
select rdq.submit('q', 'h', 'done') as done \gset
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');

select pg_temp.pass('20 years');
select is(t.purged, 1::bigint, 'what succeeded goes after a day') from rdq.tick(max_tasks => 10000) t;
select is(count(*), 50::bigint, 'no dead letter does') from rdq.dead_letters;
select is(
  array_agg(a.affected::text || ' ' || a.reason), '{1 keep_succeeded has passed}', 'the audit counts what is gone')
from rdq.audit_log a
where a.action = 'retention';

select rdq.alter_queue('q', '{"keep_succeeded": 0}');
select rdq.submit('q', 'h', 'done') as done \gset
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select is(t.purged, 1::bigint, 'at once, where nothing is to be kept') from rdq.tick() t;

select * from finish();
rollback;
