begin;
select plan(13);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);

-- As large as it may be.
select * from pg_temp.claim_one('q') \gset
select f.status
from rdq.fail(:'task_id', :'claim_token', repeat('t', 255), stack => repeat('s', 65536),
  detail => to_jsonb(repeat('d', 16382))) f;
select is(error_type, repeat('t', 255), 'a type of 255 bytes is kept') from rdq.history(:'task_id');
select is(stack, repeat('s', 65536), 'a stack of 64 KiB is kept') from rdq.history(:'task_id');
select is(detail, to_jsonb(repeat('d', 16382)), 'a detail of 16 KiB is kept') from rdq.history(:'task_id');

-- 300 KB each.
select * from pg_temp.claim_one('q') \gset
select f.status
from rdq.fail(:'task_id', :'claim_token', repeat('t', 300000), repeat('m', 300000), repeat('€', 100000),
  jsonb_build_object('answer', repeat('d', 300000))) f;
select is(error_type, repeat('t', 242) || E'\n[cut by rdq]', 'a longer type is cut')
from rdq.history(:'task_id');
select cmp_ok(octet_length(stack), '<=', 65536, 'a longer stack is cut at 64 KiB')
from rdq.history(:'task_id');
select cmp_ok(octet_length(stack), '>', 65532, 'and no shorter than it must') from rdq.history(:'task_id');
select matches(stack, '^€+\n\[cut by rdq\]$', 'on a character boundary, with a mark')
from rdq.history(:'task_id');
select cmp_ok(octet_length(detail::text), '<=', 16384, 'a larger detail fits into its limit')
from rdq.history(:'task_id');
select matches(detail ->> 'cut by rdq', '^{"answer": "d+\n\[cut by rdq\]$', 'as the beginning of its text, with a mark')
from rdq.history(:'task_id');

-- The same in a batch.
select * from pg_temp.claim_one('q') \gset
select r.status
from rdq.report(array[:'task_id']::uuid[], array[:'claim_token']::uuid[], array[jsonb_build_object(
  'type', repeat('t', 300000), 'message', repeat('m', 300000), 'stack', repeat('s', 300000),
  'detail', to_jsonb(repeat('d', 300000))
)]) r;
select is(octet_length(error_type), 255, 'type') from rdq.history(:'task_id');
select is(octet_length(message), 4096, 'message') from rdq.history(:'task_id');
select is(octet_length(stack), 65536, 'stack') from rdq.history(:'task_id');
select cmp_ok(octet_length(detail::text), '<=', 16384, 'and detail of a batch are cut too')
from rdq.history(:'task_id');

select * from finish();
rollback;
