begin;
\ir ../helpers/common.psql
select plan(5);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k', error => '{"class": "PERMANENT"}') as id \gset

select rdq.redrive(:'id');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'id', 'PENDING');
select * from pg_temp.claim_one('q') \gset
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'id', 'IN_FLIGHT');
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select rdq.redrive_where(queue => 'q');
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'id', 'redriven in bulk');
select * from pg_temp.claim_one('q') \gset
select rdq.complete(:'task_id', :'claim_token');
select isnt(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'id', 'once it has succeeded the key is free');
select is(count(*), 1::bigint, 'one holder') from rdq.dedupe;

select * from finish();
rollback;
