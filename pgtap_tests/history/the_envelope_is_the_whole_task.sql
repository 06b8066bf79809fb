begin;
select plan(9);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 1}');
select rdq.submit(
  'q', 'charge', '\x00ff0d0a'::bytea || convert_to(repeat('x', 100), 'UTF8'), '{"k": "v"}',
  give_up_at => '2999-01-01 UTC', max_attempts => 1, dedupe_key => 'order-42', handler_version => 'v3',
  content_type => 'application/x-odd'
) as task \gset

select is(e ->> 'status', 'PENDING', 'where it is') from rdq.envelope(:'task') e;
select is(e -> 'attempts', '[]', 'no attempt yet') from rdq.envelope(:'task') e;
select is(e -> 'dead', 'null', 'and not dead') from rdq.envelope(:'task') e;
select pg_temp.fail_one('q', error_type => 'bank.Down');

create temp table envelope as select rdq.envelope(:'task') as e;
select is(
  decode(e ->> 'payload', 'base64'), '\x00ff0d0a'::bytea || convert_to(repeat('x', 100), 'UTF8'),
  'its payload, byte for byte in base64'
)
from envelope;
select doesnt_match(e ->> 'payload', '\s', 'on one line') from envelope;
select is(
  concat_ws(
    ' ', e ->> 'id', e ->> 'queue', e ->> 'handler', e ->> 'handler_version', e ->> 'content_type', e #>> '{headers,k}',
    e ->> 'dedupe_key', e ->> 'max_attempts'
  ),
  :'task' || ' q charge v3 application/x-odd v order-42 1', 'what was asked'
)
from envelope;
select is((e ->> 'give_up_at')::timestamptz, '2999-01-01 UTC', 'and until when') from envelope;
select is(e #>> '{attempts,0,error_type}', 'bank.Down', 'every attempt') from envelope;
select is(row(e ->> 'status', e #>> '{dead,reason}')::text, '(DEAD,EXHAUSTED)', 'and why it is dead')
from envelope;

select * from finish();
rollback;
