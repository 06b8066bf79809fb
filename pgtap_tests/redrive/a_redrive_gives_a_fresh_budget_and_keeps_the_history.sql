-- Trouble case E1, with an expired lease among the old attempts.
begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(12);

select rdq.create_queue('q', '{"max_attempts": 3, "ladder": [0]}');
select rdq.submit('q', 'h', 'x') as id \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'first', error_class => 'TRANSIENT');
select * from pg_temp.claim_one('q') \gset
select pg_temp.pass('1 hour');
select rdq.reclaim();
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', 'third', error_class => 'TRANSIENT');
select is(t.dead_reason, 'EXHAUSTED', 'dead after three of three') from rdq.tasks t where t.task_id = :'id';
create temporary table first_life as select * from rdq.history(:'id');

select clock_timestamp() as before \gset
select unnest(array[
  is(r.status, 'PENDING', 'redriven it waits'),
  ok(r.next_attempt_at between :'before' and clock_timestamp(), 'from now on'),
  is(r.redrive_count, 1, 'it was redriven once')
])
from rdq.redrive(:'id') r;
select is(
  array[t.attempt_count, t.redrive_count], array[0::bigint, 1], 'nothing of its budget is spent')
from rdq.tasks t where t.task_id = :'id';

select task_id, claim_token, attempt_no, attempt_count, redrive_count from rdq.claim(array['q'], 'tester') \gset
select is(
  array[:attempt_no, :attempt_count, :redrive_count], array[4, 1, 1],
  'the next attempt is the fourth, the first of three');
select pg_temp.pass('1 hour');
select rdq.reclaim();
select task_id, claim_token, attempt_no, attempt_count from rdq.claim(array['q'], 'tester') \gset
select is(array[:attempt_no, :attempt_count], array[5, 2], 'an expired lease of the new life is numbered on');
select is(f.status, 'PENDING', 'two of three')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;
select task_id, claim_token, attempt_no, attempt_count from rdq.claim(array['q'], 'tester') \gset
select is(f.dead_reason, 'EXHAUSTED', 'three of three')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select is(array_agg(h.attempt_no), array[1, 2, 3, 4, 5, 6], 'numbers without holes') from rdq.history(:'id') h;
select is(array_agg(h.life), array[0, 0, 0, 1, 1, 1], 'each in its life') from rdq.history(:'id') h;
select set_eq(
  format($$
    select attempt_no, outcome, message, runner, claim.interval
    from rdq.history(%L) h
    cross join lateral (select h.finished_at - h.started_at as interval) claim
    where life = 0
  $$, :'id'),
  $$ select attempt_no, outcome, message, runner, finished_at - started_at from first_life $$,
  'the first life is as it was');

select * from finish();
rollback;
