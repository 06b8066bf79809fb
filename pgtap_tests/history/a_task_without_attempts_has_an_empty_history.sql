begin;
select plan(2);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as task \gset
select is_empty(format('select * from rdq.history(%L)', :'task'), 'before its first claim');
select task_id from rdq.claim('{q}', 'tester') \gset
select is_empty(
  format('select * from rdq.history(%L)', :'task'), 'and while that is in flight: an attempt is recorded when it ends'
);

select * from finish();
rollback;
