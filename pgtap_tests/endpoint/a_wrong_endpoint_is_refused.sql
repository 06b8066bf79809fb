-- What is refused when an endpoint is set. Where it may lead is decided by the runner, on the address.
begin;
\ir ../helpers/common.psql
select plan(62);

select rdq.create_queue('q');
select pg_temp.stored() as before \gset

create temp table wrong as
select c.arguments, c.expected, e.code, e.message, e.hint
from (
  values
    ($$'nowhere', 'h', 'https://example.org/'$$, 'RD001'),
    ($$'q', 'No Name', 'https://example.org/'$$, 'RD002'),
    ($$'q', null, 'https://example.org/'$$, 'RD002'),
    ($$'q', 'h', null$$, 'RD002'),
    ($$'q', 'h', ''$$, 'RD002'),
    ($$'q', 'h', 'example.org'$$, 'RD002'),
    ($$'q', 'h', 'ftp://example.org/'$$, 'RD002'),
    ($$'q', 'h', 'https:///path'$$, 'RD002'),
    ($$'q', 'h', 'https://user:secret@example.org/'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/a b'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/#part'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/' || repeat('x', 2000)$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', timeout => null$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', timeout => '0'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', timeout => '-1 second'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', timeout => '25 hours'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => null$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => '[]'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => '{"a": 1}'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => '{"a b": "c"}'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => '{"a": "b\r\nc: d"}'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => '{"Webhook-Id": "1"}'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', headers => '{"HOST": "other"}'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', secret => 'whsec_c2VjcmV0'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', secret => 'env:'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', response_rules => null$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', response_rules => '{}'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', response_rules => '[{"status": "600", "class": "PERMANENT"}]'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', response_rules => '[{"status": "409", "class": "MAYBE"}]'$$, 'RD002'),
    ($$'q', 'h', 'https://example.org/', response_rules => '[{"status": "409", "class": "PERMANENT", "x": 1}]'$$, 'RD002')
) as c (arguments, expected)
cross join lateral pg_temp.error_of(format('select rdq.set_endpoint(%s)', c.arguments)) e;

select is(code, expected, arguments) from wrong;
select isnt(hint, '', 'says what to do: ' || arguments) from wrong;
select is_empty($$ select from wrong where message like '%user:secret%' or message like '%whsec%' $$,
  'no password and no secret is repeated');
select is(pg_temp.stored(), :'before', 'nothing was stored');

select * from finish();
rollback;
