begin;
select plan(2);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as removed \gset
delete from rdq.due;
delete from rdq.task;

set local statement_timeout = '5s';
select rdq.submit('q', 'h', 'y', dedupe_key => 'k') as id \gset
select isnt(:'id'::uuid, :'removed'::uuid, 'a submit of the key is a new task');
select is((select task_id from rdq.dedupe), :'id'::uuid, 'which has the key');

select * from finish();
rollback;
