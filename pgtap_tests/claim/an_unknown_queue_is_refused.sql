begin;
select plan(11);
\ir ../helpers/common.psql

select rdq.create_queue('known');
select rdq.submit('known', 'h', 'x');
select pg_temp.stored() as before \gset

create temp table refused as
select v.place, v.call, v.code as wanted, v.message as pattern, e.*
from (
  values
    (1, $$ select * from rdq.claim('{unknown}', 'tester') $$, 'RD001', '%"unknown"%'),
    (2, $$ select * from rdq.claim('{known,unknown}', 'tester') $$, 'RD001', '%"unknown"%'),
    (3, $$ select * from rdq.claim(array[null], 'tester') $$, 'RD001', '%null%'),
    (4, $$ select * from rdq.next_due_at('{unknown}') $$, 'RD001', '%"unknown"%'),
    (5, $$ select * from rdq.reclaim(10, '{known,unknown}') $$, 'RD001', '%"unknown"%')
) as v (place, call, code, message)
cross join lateral pg_temp.error_of(v.call) e;

select ok(code = wanted and message like pattern, format('%s: %s', code, message))
from refused
order by place;
select matches(hint, 'rdq.create_queue.*rdq.queues', 'the advice is to create it or to look it up')
from refused
order by place;
select is(pg_temp.stored(), :'before', 'nothing was claimed');

select * from finish();
rollback;
