begin;
\ir ../helpers/common.psql
select plan(8);

select rdq.create_queue('q');
select rdq.set_endpoint('q', 'charge', 'https://example.org/charge');
select results_eq(
  $$ select queue, handler, url, timeout, headers, secret, response_rules from rdq.callbacks('{q}') $$,
  $$ values ('q', 'charge', 'https://example.org/charge', interval '30 seconds', '{}'::jsonb, null::text, '[]'::jsonb) $$,
  'a URL is enough');

select rdq.set_endpoint('q', 'charge', 'http://example.org:8080/v2?x=1', timeout => '5 seconds',
  headers => '{"X-Tenant": "a"}', secret => 'env:CHARGE_SECRET',
  response_rules => '[{"status": "409", "class": "SUCCEEDED"}, {"status": "4xx", "class": "TRANSIENT"}]');
select results_eq(
  $$ select url, timeout, headers, secret, jsonb_array_length(response_rules) from rdq.callbacks('{q}') $$,
  $$ values ('http://example.org:8080/v2?x=1', interval '5 seconds', '{"X-Tenant": "a"}'::jsonb, 'env:CHARGE_SECRET', 2) $$,
  'set again, all of it is new');
select is((select count(*) from rdq.endpoints), 1::bigint, 'and it is one');
select hasnt_column('rdq', 'endpoints', 'headers', 'people do not see the header fields, which may hold a secret');
select results_eq(
  $$ select before ->> 'url', after ->> 'url' from rdq.audit where action = 'set_endpoint' order by id $$,
  $$ values (null, 'https://example.org/charge'), ('https://example.org/charge', 'http://example.org:8080/v2?x=1') $$,
  'the audit keeps both');

select rdq.drop_endpoint('q', 'charge');
select is_empty($$ select * from rdq.callbacks(null) $$, 'dropped, it is gone');
select is((pg_temp.error_of($$ select rdq.drop_endpoint('q', 'charge') $$)).code, 'RD003', 'once');

select rdq.set_endpoint('q', 'charge', 'https://example.org/charge');
select rdq.drop_queue('q');
select rdq.create_queue('q');
select is_empty($$ select * from rdq.callbacks('{q}') $$, 'a queue takes its endpoints along');

select * from finish();
rollback;
