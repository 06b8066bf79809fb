begin;
select plan(5);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as task \gset
select * from pg_temp.claim_one('q') \gset

select results_eq(
  format('select * from rdq.fail(%L, %L, ''ParseError'', error_class => ''PERMANENT'')', :'task_id', :'claim_token'),
  $$ values ('DEAD', null::timestamptz, 'PERMANENT', false) $$,
  'the answer says so'
);
select is(pg_temp.history_of(:'task'), '1 PERMANENT', 'after one attempt');
select is(row(status, dead_reason, next_attempt_at)::text, '(DEAD,PERMANENT,)', 'the task is dead')
from rdq.tasks;
select is(row(dead_reason, error_class, error_type)::text, '(PERMANENT,PERMANENT,ParseError)', 'it is a dead letter')
from rdq.dead_letters;
select is_empty($$ select * from rdq.due $$, 'and waits for nothing');

select * from finish();
rollback;
