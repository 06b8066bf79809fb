begin;
select plan(4);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', error => jsonb_build_object(
  'type', repeat('é', 5000), 'message', repeat('é', 5000), 'stack', repeat('é', 500000),
  'detail', jsonb_build_object('body', repeat('x', 500000)))) as id \gset

select unnest(array[
  ok(octet_length(h.message) between 4090 and 4096 and h.message like 'éé%cut%', 'the message at 4 KiB, with a mark'),
  ok(octet_length(h.stack) between 65530 and 65536 and h.stack like 'éé%cut%', 'the stack at 64 KiB, with a mark'),
  ok(octet_length(h.error_type) between 240 and 255, 'the type at 255 bytes'),
  ok(octet_length(h.detail::text) < 16384 and h.detail::text like '%cut%', 'the detail too')
])
from rdq.history(:'id') h;

select * from finish();
rollback;
