begin;
\ir ../helpers/common.psql
select plan(7);

select rdq.create_queue('q', '{"error_rules": [{"match": "ParseError", "class": "PERMANENT"}]}');

select rdq.submit('q', 'h', 'x', error => '{"type": "E", "message": "no such account", "class": "PERMANENT"}') as id \gset
select unnest(array[
  is(t.status, 'DEAD', 'it is dead'),
  is(t.dead_reason, 'PERMANENT', 'with its reason'),
  is(t.attempt_count, 0::bigint, 'nothing was spent')
])
from rdq.tasks t where t.task_id = :'id';
select is(d.message, 'no such account', 'it is among the dead letters, with its error')
from rdq.dead_letters d where d.task_id = :'id';

select rdq.submit('q', 'h', 'x', error => '{"type": "ParseError"}') as id \gset
select is(pg_temp.status_of(:'id'), 'DEAD', 'the queue''s rules may say so too');
select rdq.submit('q', 'h', 'x', error => '{"type": "ParseError", "class": "TRANSIENT"}') as id \gset
select is(pg_temp.status_of(:'id'), 'PENDING', 'the producer''s word is before the rules');
select is_empty($$ select * from rdq.claim(array['q'], 'tester') $$, 'none can be claimed');

select * from finish();
rollback;
