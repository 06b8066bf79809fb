begin;
\ir ../helpers/common.psql
select plan(9);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as id \gset
select throws_ok($$ select rdq.drop_queue('q') $$, 'RD004', null, 'a task that is PENDING');
select * from pg_temp.claim_one('q') \gset
select throws_ok($$ select rdq.drop_queue('q') $$, 'RD004', null, 'a task that is IN_FLIGHT');
select rdq.complete(:'task_id', :'claim_token');
select throws_ok($$ select rdq.drop_queue('q') $$, 'RD004', null, 'a task that is SUCCEEDED');
select rdq.purge(:'id');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select throws_ok($$ select rdq.drop_queue('q') $$, 'RD004', null, 'a task that is DEAD');
select ok(pg_temp.hint_of($$ select rdq.drop_queue('q') $$) like '%rdq.tasks%', 'the hint says how to look');
select rdq.purge(:'id');

select lives_ok($$ select rdq.drop_queue('q') $$, 'nothing is in it');
select is_empty($$ select from rdq.queues where queue = 'q' $$, 'it is gone');
select throws_ok($$ select rdq.submit('q', 'h', 'x') $$, 'RD001', null, 'a submit is refused');
select pg_temp.rows_are(
  $$ select action, before ->> 'queue', after from rdq.audit_log where action = 'drop_queue' $$,
  $$ values ('drop_queue', 'q', null::jsonb) $$,
  'the audit keeps its settings');

select * from finish();
rollback;
