begin;
select plan(41);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
select pg_temp.stored() as before \gset

create temp table refused as
select row_number() over () as place, v.call, v.message as pattern, e.*
from (
  values
    ($$ rdq.claim('{}', 'tester') $$, '%queues%empty%'),
    ($$ rdq.claim('{q}', null) $$, '%runner%null%'),
    ($$ rdq.claim('{q}', '') $$, '%runner%0%'),
    ($$ rdq.claim('{q}', repeat('r', 241)) $$, '%runner%241%'),
    ($$ rdq.claim('{q}', 'tester', 0) $$, '%max_tasks%0%'),
    ($$ rdq.claim('{q}', 'tester', -1) $$, '%max_tasks%-1%'),
    ($$ rdq.claim('{q}', 'tester', null) $$, '%max_tasks%null%'),
    ($$ rdq.claim('{q}', 'tester', 10001) $$, '%max_tasks%10001%'),
    ($$ rdq.claim('{q}', 'tester', lease => '0') $$, '%lease%00:00:00%'),
    ($$ rdq.claim('{q}', 'tester', lease => '-1 minute') $$, '%lease%-00:01:00%'),
    ($$ rdq.claim('{q}', 'tester', lease => '31 days') $$, '%lease%31 days%'),
    ($$ rdq.claim('{q}', 'tester', code_version => repeat('v', 241)) $$, '%code_version%'),
    ($$ rdq.next_due_at('{}') $$, '%queues%empty%')
) as v (call, message)
cross join lateral pg_temp.error_of('select * from ' || v.call) e;

select is(code, 'RD002', call || ' is refused') from refused order by place;
select ok(message like pattern, 'by the name of the argument: ' || coalesce(message, 'not refused'))
from refused
order by place;
select ok(length(hint) > 10, 'with advice: ' || coalesce(hint, 'none')) from refused order by place;
select is(pg_temp.stored(), :'before', 'nothing was claimed');
select is(count(*), 3::bigint, 'and all is there for the right claim') from rdq.claim('{q}', 'tester', 10);

select * from finish();
rollback;
