begin;
\ir ../helpers/common.psql
select plan(9);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k', error => '{"class": "PERMANENT"}') as dead \gset
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as done \gset
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as other \gset

set local rdq.actor = 'ada';
select lives_ok(format('select rdq.purge(%L, %L)', :'dead', 'a test'), 'a dead letter');
select lives_ok(format('select rdq.purge(task_id => %L)', :'done'), 'a task that has succeeded');

select is(count(*), 0::bigint, 'no task is left') from rdq.task t where t.id in (:'dead', :'done');
select is(count(*), 0::bigint, 'no attempt') from rdq.attempt a where a.task_id in (:'dead', :'done');
select is(count(*), 0::bigint, 'no dead letter') from rdq.dead;
select is(pg_temp.status_of(:'other'), 'PENDING', 'another one is as it was');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'other', 'and keeps its key');

select pg_temp.rows_are(
  $$ select actor, queue, task_id, affected, reason from rdq.audit_log where action = 'purge' order by id $$,
  format($$ values ('ada', 'q', %L::uuid, 1::bigint, 'a test'), ('ada', 'q', %L, 1, null) $$, :'dead', :'done'),
  'the audit says what is gone');
select throws_ok(format('select * from rdq.history(%L)', :'dead'), 'RD003', null, 'it has no history');

select * from finish();
rollback;
