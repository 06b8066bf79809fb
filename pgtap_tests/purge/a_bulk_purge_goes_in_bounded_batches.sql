begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(15);

select rdq.create_queue('q');
select rdq.create_queue('other');
select pg_temp.write_dead('q', 10);
select pg_temp.pass('1 hour');
select pg_temp.write_dead('q', 5);
select pg_temp.write_dead('other', 2);
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01') as waits \gset
select rdq.submit('q', 'h', 'x') as done \gset
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');

select pg_temp.stored() as before \gset
select is(array[p.purged, p.remaining], '{0,15}', 'a dry run counts')
from rdq.purge_where(queue => 'q', dry_run => true, reason => 'r') p;
select is(pg_temp.stored(), :'before', 'and changes nothing');

set local rdq.actor = 'ada';
select is(array[p.purged, p.remaining], '{4,11}', 'at most max_tasks')
from rdq.purge_where(queue => 'q', reason => 'old', max_tasks => 4) p;
select ok(min(d.dead_at) < clock_timestamp() - interval '59 minutes', 'the oldest first')
from rdq.dead d where d.queue = 'q';
select is(count(*), 6::bigint, 'six of the ten older ones are left')
from rdq.dead_letters(queue => 'q', until => clock_timestamp() - interval '30 minutes');
select is(array[p.purged, p.remaining], '{6,0}', 'a filter bounds it')
from rdq.purge_where(queue => 'q', until => clock_timestamp() - interval '30 minutes') p;
select is(array[p.purged, p.remaining], '{5,0}', 'until none is left')
from rdq.purge_where(queue => 'q', max_tasks => 5) p;
select is(array[p.purged, p.remaining], '{0,0}', 'and then nothing') from rdq.purge_where(queue => 'q') p;

select is(count(*), 2::bigint, 'the other queue is as it was') from rdq.dead_letters;
select is(
  array[pg_temp.status_of(:'waits'), pg_temp.status_of(:'done')], '{PENDING,SUCCEEDED}', 'so is what is not dead');
select is(count(*), 2::bigint, 'no attempt is left of what is gone')
from rdq.attempt a where a.task_id <> :'done';

select pg_temp.rows_are(
  $$ select actor, queue, filter, affected, reason from rdq.audit_log where action = 'purge_where' order by id limit 1 $$,
  $$ values ('ada', 'q', '{"queue": "q"}'::jsonb, 4::bigint, 'old') $$,
  'the audit says who, what, how many and why');
select is(sum(a.affected), 15::numeric, 'all of them') from rdq.audit_log a where a.action = 'purge_where';

select is(e.code, 'RD002', format('max_tasks => %s', s.given))
from (values ('0'), ('10001')) s (given)
cross join pg_temp.error_of(format('select * from rdq.purge_where(queue => %L, max_tasks => %s)', 'other', s.given)) e;

select * from finish();
rollback;
