begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(5);

select rdq.create_queue('plain');
select rdq.create_queue('strict', '{"handler_timeout": "5 seconds", "on_version_mismatch": "dead"}');
select results_eq(
  $$ select * from rdq.policies('{strict,plain}') $$,
  $$ values ('plain', null::interval, 'run'), ('strict', interval '5 seconds', 'dead') $$,
  'each queue''s own');
select rdq.alter_queue('strict', '{"on_version_mismatch": null, "handler_timeout": null}');
select is((select count(*) from rdq.policies(null) where on_version_mismatch = 'run'), 2::bigint, 'null is the default again');
select is(
  (pg_temp.error_of($$ select rdq.alter_queue('plain', '{"on_version_mismatch": "ignore"}') $$)).code, 'RD002',
  'anything else is refused');
select is((pg_temp.error_of($$ select * from rdq.policies('{nowhere}') $$)).code, 'RD001', 'an unknown queue is refused');
select is((pg_temp.error_of($$ select * from rdq.callbacks('{nowhere}') $$)).code, 'RD001', 'for callbacks too');

select * from finish();
rollback;
