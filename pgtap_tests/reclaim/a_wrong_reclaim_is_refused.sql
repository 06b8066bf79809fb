begin;
select plan(17);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x');
select pg_temp.claim_one('q');
select pg_temp.pass('1 day');
select pg_temp.stored() as before \gset

create temp table refused as
select row_number() over () as place, v.call, v.message as pattern, e.*
from (
  values
    ('rdq.reclaim(0)', '%max_tasks%0%'),
    ('rdq.reclaim(-5)', '%max_tasks%-5%'),
    ('rdq.reclaim(null)', '%max_tasks%null%'),
    ('rdq.reclaim(10001)', '%max_tasks%10001%'),
    ('rdq.reclaim(10, ''{}'')', '%queues%empty%'),
    ('rdq.tick(0)', '%max_tasks%0%'),
    ('rdq.tick(null)', '%max_tasks%null%'),
    ('rdq.tick(10, ''{}'')', '%queues%empty%')
) as v (call, message)
cross join lateral pg_temp.error_of('select * from ' || v.call) e;

select ok(code = 'RD002' and message like pattern, call || ': ' || coalesce(message, 'not refused'))
from refused
order by place;
select ok(length(hint) > 10, 'with advice: ' || coalesce(hint, 'none')) from refused order by place;
select is(pg_temp.stored(), :'before', 'nothing was taken back');

select * from finish();
rollback;
