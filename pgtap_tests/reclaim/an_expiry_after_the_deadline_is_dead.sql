begin;
select plan(5);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"backoff_base": "10 minutes", "jitter": 0}');
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '1 hour') as late \gset
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '3 hours') as early \gset
select count(*) from rdq.claim('{q}', 'tester', 2);
select pg_temp.pass('2 hours');

select results_eq(
  'select status from rdq.reclaim() order by status', $$ values ('DEAD'), ('PENDING') $$,
  'of two that vanish one is past its deadline'
);
select is(row(status, dead_reason)::text, '(DEAD,DEADLINE)', 'it is dead')
from rdq.tasks
where task_id = :'late';
select is(pg_temp.history_of(:'late'), '1 LEASE_EXPIRED', 'and its attempt is in the history');
select is(pg_temp.status_of(:'early'), 'PENDING', 'the other waits');
select is(row(dead_reason, error_type)::text, '(DEADLINE,LEASE_EXPIRED)', 'the dead letter shows what it ended with')
from rdq.dead_letters;

select * from finish();
rollback;
