begin;
\ir ../helpers/common.psql
select plan(5);

select rdq.create_queue('q', '{"max_attempts": 3}');

select rdq.submit(
  queue => 'q', handler => 'charge', payload => 'x', headers => '{"traceparent": "00-1"}',
  run_at => clock_timestamp() - interval '1 hour', give_up_at => '2999-01-01', max_attempts => 7,
  dedupe_key => 'order 42', handler_version => '2026.1', error => null,
  task_id => '01890000-0000-7000-8000-000000000001', content_type => 'text/csv'
) as id \gset
select is(:'id'::uuid, '01890000-0000-7000-8000-000000000001', 'the id is the caller''s');
select results_eq(
  $$
    select queue, handler, handler_version, payload, content_type, headers, attempt_no, attempt_count, redrive_count,
      give_up_at
    from rdq.claim(array['q'], 'tester')
  $$,
  $$
    values ('q', 'charge', '2026.1', 'x'::bytea, 'text/csv', '{"traceparent": "00-1"}'::jsonb, 1, 1, 0,
      '2999-01-01'::timestamptz)
  $$,
  'a claim hands out what was asked');
select unnest(array[
  is(t.max_attempts, 7, 'max_attempts is the task''s own'),
  is(t.dedupe_key, 'order 42', 'it has its key')
])
from rdq.tasks t where t.task_id = :'id';

select rdq.submit('q', 'charge', 'x', null, null, null, null, null, null, null, null, null) as id \gset
select results_eq(
  format($$ select t.headers, t.max_attempts, t.give_up_at, t.handler_version from rdq._task(%L::uuid) t $$, :'id'),
  $$ values ('{}'::jsonb, null::integer, null::timestamptz, null::text) $$,
  'null is the same as not given');

select * from finish();
rollback;
