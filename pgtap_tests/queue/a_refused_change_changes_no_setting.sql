begin;
\ir ../helpers/common.psql
select plan(4);

select rdq.create_queue('q');
select pg_temp.stored() as before \gset

select throws_ok(
  $$ select rdq.alter_queue(queue => 'q', settings => '{"max_attempts": 3, "lease": "never"}') $$, 'RD002', null,
  'one of two is wrong');
select throws_ok(
  $$ select rdq.create_queue(queue => 'q', settings => '{"max_attempts": 3, "leases": 10}') $$, 'RD002', null,
  'one of two is unknown');
select throws_ok(
  $$ select rdq.create_queue(queue => 'new', settings => '{"lease": 0}') $$, 'RD002', null,
  'a new queue with a wrong setting');
select is(pg_temp.stored(), :'before', 'nothing changed, nothing was made');

select * from finish();
rollback;
