begin;
\ir ../helpers/common.psql
select plan(8);

select rdq.create_queue('payments', '{"max_attempts": 2, "ladder": [0]}');

select rdq.submit('payments', 'charge', '{"order": 42}', dedupe_key => 'k') as id \gset
select task_id, claim_token from rdq.claim(array['payments'], 'worker 1', code_version => 'v1') \gset
select rdq.fail(:'task_id', :'claim_token', 'TimeoutException', 'first', 'a stack', error_class => 'TRANSIENT');
select task_id, claim_token from rdq.claim(array['payments'], 'worker 2', code_version => 'v2') \gset
select rdq.fail(:'task_id', :'claim_token', 'TimeoutException', 'no answer within 30 s', 'a stack', error_class => 'TRANSIENT');

select pg_temp.rows_are(
  $$
    select d.task_id, d.queue, d.handler, d.dead_reason, d.error_class, d.error_type, d.message, d.code_version,
      d.attempts, d.redrive_count
    from rdq.dead_letters d
  $$,
  format($$
    values (%L::uuid, 'payments', 'charge', 'EXHAUSTED', 'TRANSIENT', 'TimeoutException', 'no answer within 30 s', 'v2',
      2::bigint, 0)
  $$, :'id'),
  'why it is dead, its last error and code version, and how often it was tried');
select unnest(array[
  ok(d.dead_at between d.created_at and clock_timestamp(), 'when'),
  matches(d.fingerprint, '^[0-9a-f]{16}$', 'a fingerprint')
])
from rdq.dead_letters d;
select hasnt_column('rdq', 'dead_letters', 'stack', 'no stack');
select hasnt_column('rdq', 'dead_letters', 'payload', 'no payload');

select rdq.redrive(:'id');
select is_empty($$ select from rdq.dead_letters $$, 'what is redriven is no dead letter');
select * from pg_temp.claim_one('payments') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select is(array[d.attempts, d.redrive_count], '{3,1}', 'what dies again is one, with all of its attempts')
from rdq.dead_letters d;

select rdq.submit('payments', 'charge', 'x', error => '{"class": "PERMANENT", "message": "later"}');
select is(array_agg(d.message order by d.place), '{later,null}', 'newest first')
from (select row_number() over () as place, l.message from rdq.dead_letters l) d;

select * from finish();
rollback;
