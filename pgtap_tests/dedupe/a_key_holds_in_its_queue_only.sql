begin;
select plan(5);

select rdq.create_queue('q');
select rdq.create_queue('other');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as id \gset
select rdq.submit('other', 'h', 'x', dedupe_key => 'k') as other \gset

select isnt(:'other'::uuid, :'id', 'the same key in another queue is another key');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'id', 'each joins');
select is(rdq.submit('other', 'h', 'x', dedupe_key => 'k'), :'other', 'its own');
select is(rdq.submit('q', 'other', 'x', dedupe_key => 'k'), :'id', 'in one queue it is one, whatever the handler');
select isnt(rdq.submit('q', 'h', 'x', dedupe_key => 'K'), :'id', 'keys are compared exactly');

select * from finish();
rollback;
