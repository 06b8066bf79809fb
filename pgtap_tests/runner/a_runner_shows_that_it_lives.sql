begin;
\ir ../helpers/common.psql
select plan(8);
select rdq.create_queue('q');

select rdq.runner_seen('a', 'host', '0.1.0', 'r1', '{q}', concurrency => 8, in_flight => 3, unreported => 1);
select pg_temp.rows_are(
  $$ select runner, host, version, code_version, queues, concurrency, in_flight, unreported, alive from rdq.runners $$,
  $$ values ('a', 'host', '0.1.0', 'r1', '{q}'::text[], 8, 3, 1, true) $$,
  'what it says of itself is shown');

update rdq.runner set started_at = started_at - interval '1 hour', seen_at = seen_at - interval '31 seconds';
select is((select alive from rdq.runners), false, 'one that is silent for half a minute is not alive');

select rdq.runner_seen('a', 'host', '0.1.0', in_flight => 0);
select ok((select alive from rdq.runners), 'seen again, it is');
select ok((select seen_at - started_at > interval '59 minutes' from rdq.runners), 'and has been since it started');

select rdq.runner_seen('b', null, null);
update rdq.runner set seen_at = seen_at - interval '25 hours' where runner = 'b';
select rdq.runner_seen('a', 'host', '0.1.0');
select pg_temp.rows_are($$ select runner from rdq.runners $$, $$ values ('a') $$, 'one that was killed long ago is forgotten');

select rdq.runner_gone('a');
select rdq.runner_gone('never there');
select is_empty($$ select from rdq.runners $$, 'one that stops takes itself away');

select is((pg_temp.error_of($$ select rdq.runner_seen('', 'h', '1') $$)).code, 'RD002', 'a name is needed');
select is((pg_temp.error_of($$ select rdq.runner_seen(null, 'h', '1') $$)).code, 'RD002', 'indeed');

select * from finish();
rollback;
