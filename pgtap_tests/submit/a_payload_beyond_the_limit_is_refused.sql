begin;
\ir ../helpers/common.psql
select plan(13);

select rdq.create_queue('q', '{"max_payload_bytes": 10}');

select lives_ok($$ select rdq.submit('q', 'h', '0123456789') $$, 'as many bytes as the queue takes');
select throws_ok($$ select rdq.submit('q', 'h', '01234567890') $$, 'RD006', null, 'one more');
select throws_ok($$ select rdq.submit('q', 'h', 'ééééé1') $$, 'RD006', null, 'bytes are counted, not characters');
select throws_ok($$ select rdq.submit('q', 'h', '{"a": 12345}'::json) $$, 'RD006', null, 'json');
select throws_ok($$ select rdq.submit('q', 'h', '{"a": 12345}'::jsonb) $$, 'RD006', null, 'jsonb');
select throws_ok($$ select rdq.submit('q', 'h', '\x0000000000000000000000'::bytea) $$, 'RD006', null, 'bytea');

select unnest(array[
  ok(e.message like '%11%' and e.message like '%10%', 'the message has both numbers'),
  ok(e.hint like '%max_payload_bytes%', 'the hint names the setting')
])
from pg_temp.error_of($$ select rdq.submit('q', 'h', '01234567890') $$) e;

select unnest(array[
  is(e.code, 'RD006', 'submit_many refuses it too'),
  ok(e.message like '%tasks[1]%', 'and names the item')
])
from pg_temp.error_of($$
  select rdq.submit_many('q', '[{"handler": "h", "payload": "1"}, {"handler": "h", "payload": "01234567890"}]')
$$) e;

select is(count(*), 1::bigint, 'only the first was stored') from rdq.task;

select rdq.alter_queue('q', '{"max_payload_bytes": null}');
select lives_ok($$ select rdq.submit('q', 'h', repeat('x', 1048576)) $$, 'a mebibyte by default');
select throws_ok($$ select rdq.submit('q', 'h', repeat('x', 1048577)) $$, 'RD006', null, 'and no more');

select * from finish();
rollback;
