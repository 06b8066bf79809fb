begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(25);

select rdq.create_queue('a');
select rdq.create_queue('b');
select rdq.submit_many('a', '[{"handler": "h", "payload": "x"}, {"handler": "h", "payload": "x"}, {"handler": "g", "payload": "x"}]');
select rdq.submit('a', 'h', 'x', dedupe_key => 'k') as keyed \gset
select * from pg_temp.claim_one('a') \gset
select rdq.submit('b', 'h', 'x') as other \gset
select rdq.submit('b', 'h', 'x', error => '{"class": "PERMANENT"}') as dead \gset

-- What is too little, or can never match.
select throws_ok($$ select rdq.cancel_where() $$, 'RD002', 'the filter is empty', 'an empty filter');
select throws_ok($$ select rdq.cancel_where('a', status => 'DEAD') $$, 'RD002', 'status is DEAD', 'what has ended');
select throws_ok($$ select rdq.cancel_where('a', handler => 'No') $$, 'RD002', null, 'a handler that nothing has');
select throws_ok($$ select rdq.cancel_where('none') $$, 'RD001', null, 'an unknown queue');
select throws_ok($$ select rdq.cancel_where('a', max_tasks => 0) $$, 'RD002', 'max_tasks is 0', 'no tasks');
select throws_ok($$ select rdq.cancel_where('a', max_tasks => 10001) $$, 'RD002', 'max_tasks is 10001', 'too many at once');

select pg_temp.stored() as before \gset
select is(c::text, '(0,4)', 'a dry run counts') from rdq.cancel_where('a', dry_run => true) c;
select is(c::text, '(0,3)', 'of one handler') from rdq.cancel_where('a', 'h', dry_run => true) c;
select is(c::text, '(0,3)', 'in one state') from rdq.cancel_where('a', status => 'PENDING', dry_run => true) c;
select is(c::text, '(0,1)', 'in the other') from rdq.cancel_where('a', status => 'IN_FLIGHT', dry_run => true) c;
select is(c::text, '(0,5)', 'of all queues, but nothing dead') from rdq.cancel_where(since => '-infinity', dry_run => true) c;
select is(c::text, '(0,0)', 'none that is younger') from rdq.cancel_where(since => clock_timestamp(), dry_run => true) c;
select is(c::text, '(0,5)', 'all that are older') from rdq.cancel_where(until => clock_timestamp(), dry_run => true) c;
select is(pg_temp.stored(), :'before', 'and changes nothing');

set local rdq.actor = 'ada';
select is(c::text, '(2,2)', 'a batch') from rdq.cancel_where('a', max_tasks => 2, reason => 'a mistake') c;
select is(c::text, '(2,0)', 'the rest') from rdq.cancel_where('a', max_tasks => 2, reason => 'a mistake') c;
select is(c::text, '(0,0)', 'none is left') from rdq.cancel_where('a', max_tasks => 2) c;
select pg_temp.rows_are(
  $$ select dead_reason, count(*) from rdq.dead_letters where queue = 'a' group by 1 $$,
  $$ values ('CANCELLED', 4::bigint) $$, 'they are dead letters');
select is(rdq.complete(:'task_id', :'claim_token'), false, 'a report of what was held is stale');
select is(a.outcome || ': ' || a.message, 'RELEASED: cancelled by ada: a mistake', 'its attempt says why')
from rdq.history(:'task_id') a;
select isnt(rdq.submit('a', 'h', 'x', dedupe_key => 'k'), :'keyed', 'its dedupe key is free');
select is(pg_temp.status_of(:'other'), 'PENDING', 'the other queue is not touched');

-- A row of the audit for each queue, and for each call that did something.
select is(c::text, '(2,0)', 'of all queues') from rdq.cancel_where(since => '-infinity', handler => 'h') c;
select pg_temp.rows_are(
  $$ select actor, queue, affected, reason, filter - 'since' from rdq.audit_log where action = 'cancel_where' order by id $$,
  $$ values ('ada', 'a', 2::bigint, 'a mistake', '{"queue": "a"}'::jsonb), ('ada', 'a', 2, 'a mistake', '{"queue": "a"}'),
    ('ada', 'a', 1, null, '{"handler": "h"}'), ('ada', 'b', 1, null, '{"handler": "h"}') $$,
  'the audit says who, where, how many and why');
select is(pg_temp.status_of(:'dead'), 'DEAD', 'what was dead stays so');

select * from finish();
rollback;
