begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(15);

select rdq.create_queue('q', '{"ladder": [0]}');
select rdq.submit(
  'q', 'charge', decode(repeat('00ff80', 1000), 'hex'), headers => '{"traceparent": "00-1"}',
  give_up_at => '2999-01-01 00:00Z',
  max_attempts => 2, dedupe_key => 'order 42', handler_version => '2026.1', content_type => 'application/x-order'
) as id \gset

select rdq.envelope(:'id') as e \gset
select is(decode(:'e'::jsonb ->> 'payload', 'base64'), decode(repeat('00ff80', 1000), 'hex'), 'the payload in base64');
select unalike(:'e'::jsonb ->> 'payload', E'%\n%', 'without line breaks');
select is(:'e'::jsonb ->> k.key, k.value, k.key)
from (values
  ('queue', 'q'), ('handler', 'charge'), ('handler_version', '2026.1'), ('content_type', 'application/x-order'),
  ('max_attempts', '2'), ('dedupe_key', 'order 42'), ('status', 'PENDING')
) k (key, value);
select is(:'e'::jsonb -> 'headers', '{"traceparent": "00-1"}', 'headers');
select is((:'e'::jsonb ->> 'give_up_at')::timestamptz, '2999-01-01 00:00Z', 'give_up_at');
select is(:'e'::jsonb -> 'attempts', '[]', 'no attempt yet');

select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'a message', 'a stack', '{"status": 503}', 'TRANSIENT');
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'another', 'a stack', error_class => 'TRANSIENT');
select rdq.envelope(:'id') as e \gset
select is(
  (select jsonb_agg(a.value - '{started_at,finished_at}'::text[]) from jsonb_array_elements(:'e'::jsonb -> 'attempts') a),
  (select jsonb_agg(to_jsonb(h) - '{started_at,finished_at}'::text[]) from rdq.history(:'id') h),
  'every attempt as the history has it');
select is(array[:'e'::jsonb ->> 'status', :'e'::jsonb #>> '{dead,reason}'], '{DEAD,EXHAUSTED}', 'the dead letter');

select throws_ok(
  $$ select rdq.envelope('01890000-0000-7000-8000-000000000001') $$, 'RD003', null, 'a task that does not exist');

select * from finish();
rollback;
