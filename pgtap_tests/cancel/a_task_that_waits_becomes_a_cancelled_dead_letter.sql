begin;
\ir ../helpers/common.psql
select plan(12);

select rdq.create_queue('q', '{"ladder": ["1 hour"]}');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01') as later \gset
select rdq.submit('q', 'h', 'x') as retries \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'm', error_class => 'TRANSIENT');
select rdq.submit('q', 'h', 'x') as due \gset

set local rdq.actor = 'ada';
select rdq.cancel(:'later', 'not needed');
select rdq.cancel(task_id => :'retries');
select rdq.pause_queue('q');
select rdq.cancel(:'due');
select rdq.resume_queue('q');

select is(t.status || ' ' || t.dead_reason, 'DEAD CANCELLED', 'it is dead') from rdq.tasks t;
select ok(t.finished_at between t.created_at and clock_timestamp(), 'since now')
from rdq.tasks t
where t.task_id = :'due';
select is(count(*), 3::bigint, 'each is a dead letter') from rdq.dead_letters(dead_reason => 'CANCELLED');
select is(d.message, 'm', 'with its last error') from rdq.dead_letters d where d.task_id = :'retries';
select is(count(*), 1::bigint, 'no attempt was added') from rdq.attempt;
select is_empty($$ select * from rdq.claim(array['q'], 'tester') $$, 'nothing can be claimed');
select pg_temp.rows_are(
  $$ select actor, queue, task_id, affected, reason from rdq.audit_log where action = 'cancel' order by id limit 1 $$,
  format($$ values ('ada', 'q', %L::uuid, 1::bigint, 'not needed') $$, :'later'),
  'the audit says who and why');

select rdq.redrive(:'due');
select is(c.attempt_count, 1, 'it can be redriven') from rdq.claim(array['q'], 'tester') c;
select is(t.status, 'IN_FLIGHT', 'and goes on') from rdq.tasks t where t.task_id = :'due';
select is(count(*), 2::bigint, 'the others stay') from rdq.dead_letters;

select * from finish();
rollback;
