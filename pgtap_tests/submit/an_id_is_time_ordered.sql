begin;
select plan(3);

select rdq.create_queue('q');
create temporary table given as
select i.number, rdq.submit('q', 'h', 'x') as id, pg_sleep(0.002)::text from generate_series(1, 20) i (number);

select ok(bool_and(substr(g.id::text, 15, 1) = '7' and substr(g.id::text, 20, 1) in ('8', '9', 'a', 'b')), 'version 7')
from given g;
select is(array_agg(g.number order by g.id), array_agg(g.number order by g.number), 'later is greater') from given g;
select ok(
  to_timestamp(('x' || lpad(left(replace(max(g.id::text), '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
    between clock_timestamp() - interval '10 seconds' and clock_timestamp() + interval '1 second',
  'it begins with the time')
from given g;

select * from finish();
rollback;
