begin;
select plan(4);

select is_empty($$ select * from rdq.claim(null, 'tester', 10) $$, 'where there is no queue there is nothing');
select rdq.create_queue('a');
select rdq.create_queue('b');
select is_empty($$ select * from rdq.claim(null, 'tester', 10) $$, 'nor where there is no task');
select rdq.submit('a', 'h', 'x'), rdq.submit('b', 'h', 'x');
select set_eq(
  $$ select queue from rdq.claim(null, 'tester', 10) $$, $$ values ('a'), ('b') $$, 'null means every queue'
);
select rdq.submit('a', 'h', 'x'), rdq.submit('b', 'h', 'x');
select is(count(*), 1::bigint, 'a queue that is named twice is one queue')
from rdq.claim('{a,a,a}', 'tester', 10);

select * from finish();
rollback;
