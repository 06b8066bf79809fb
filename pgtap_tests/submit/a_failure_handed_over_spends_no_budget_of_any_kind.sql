begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(5);

select rdq.create_queue('q', '{"max_attempts": 3, "ambiguous_attempts": 1, "ladder": [0]}');

select rdq.submit('q', 'h', 'x', error => '{"class": "AMBIGUOUS"}', max_attempts => 1) as id \gset
select is(pg_temp.status_of(:'id'), 'PENDING', 'ambiguous, where one may be: it is not that one');
select task_id, claim_token, attempt_count from rdq.claim(array['q'], 'tester') \gset
select is(:attempt_count, 1, 'the only attempt of its budget is still there');
select is(f.dead_reason, 'EXHAUSTED', 'and is the last')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select rdq.submit('q', 'h', 'x', error => '{"class": "AMBIGUOUS"}') as id \gset
select * from pg_temp.claim_one('q') \gset
select is(f.dead_reason, 'AMBIGUOUS', 'a real ambiguous failure counts')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'AMBIGUOUS') f;

select rdq.redrive(:'id');
select * from pg_temp.claim_one('q') \gset
select is(f.status, 'PENDING', 'after a redrive there is a fresh budget')
from rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'TRANSIENT') f;

select * from finish();
rollback;
