begin;
select plan(4);

select count(rdq.create_queue('q' || n)) from generate_series(1, 250) n;

-- Where a look is worth a mark at once, a mark says that there was one.
select rdq._raise_low_water(array(select queue from rdq.queue), worth => '0');
select is(count(*), 100::bigint, 'a hundred at once') from rdq.low_water;
create temporary table first_marks as select w.queue from rdq.low_water w;
update rdq.low_water set looked_at = looked_at - interval '1 second';

select rdq._raise_low_water(array(select queue from rdq.queue), worth => '0');
select is(count(*), 200::bigint, 'then others') from rdq.low_water;
select is(count(*), 0::bigint, 'and every one that has a mark again')
from rdq.low_water w
join first_marks f on f.queue = w.queue
where w.looked_at < now();

select rdq._raise_low_water(array(select queue from rdq.queue), worth => '0');
select is(count(*), 250::bigint, 'until it was the turn of all') from rdq.low_water;

select * from finish();
rollback;
