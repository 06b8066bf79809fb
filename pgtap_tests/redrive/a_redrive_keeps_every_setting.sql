-- Trouble case E2: every optional field is set; after a redrive and a second death they are as they were.
begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(6);

select rdq.create_queue('q', '{"ladder": [0]}');
select rdq.submit(
  queue => 'q', handler => 'charge', payload => 'x', headers => '{"traceparent": "00-1", "tenant": "eu"}',
  run_at => clock_timestamp() - interval '1 hour', give_up_at => clock_timestamp() + interval '30 minutes',
  max_attempts => 2,
  dedupe_key => 'order 42', handler_version => '2026.1',
  error => '{"type": "Origin", "message": "m", "class": "TRANSIENT"}', content_type => 'text/csv'
) as id \gset
create temporary table first_claim as select * from rdq.claim(array['q'], 'tester', code_version => 'v1');
select rdq.fail(c.task_id, c.claim_token, 'E', error_class => 'PERMANENT') from first_claim c;
create temporary table first_death as select * from rdq.task;

select rdq.redrive(:'id');
create temporary table second_claim as select * from rdq.claim(array['q'], 'tester', code_version => 'v1');
select results_eq(
  $$
    select task_id, queue, handler, handler_version, payload, content_type, headers, created_at, attempt_no, attempt_count,
      redrive_count
    from second_claim
  $$,
  $$
    select task_id, queue, handler, handler_version, payload, content_type, headers, created_at, 3, 1, 1
    from first_claim
  $$,
  'a worker gets what it got the first time');
select is(s.give_up_at > f.give_up_at, true, 'with a later deadline') from first_claim f cross join second_claim s;
select rdq.fail(c.task_id, c.claim_token, 'E', error_class => 'PERMANENT') from second_claim c;

select results_eq('select * from rdq.task', 'select * from first_death', 'nothing of what was asked has changed');
select is(t.dedupe_key, 'order 42', 'the key too') from rdq.tasks t where t.task_id = :'id';
select is(array[d.attempts, d.redrive_count], '{3,1}', 'its second death is in the list')
from rdq.dead_letters d where d.task_id = :'id';
select is(count(*), 1::bigint, 'once') from rdq.dead_letters;

select * from finish();
rollback;
