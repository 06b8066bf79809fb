begin isolation level serializable;
\ir ../helpers/common.psql
select plan(3);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', dedupe_key => 'k') as id \gset
select is(rdq.submit('q', 'h', 'x', dedupe_key => 'k'), :'id', 'a key joins');
select is(count(*), 2::bigint, 'so does a bulk')
from rdq.submit_many('q', '[{"handler": "h", "payload": "x", "dedupe_key": "k"}, {"handler": "h", "payload": "y"}]');
select throws_ok($$ select rdq.submit('none', 'h', 'x') $$, 'RD001', null, 'an unknown queue is unknown');

select * from finish();
rollback;
