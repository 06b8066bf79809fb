-- Whatever the attempt and the policy: no error, nothing negative, nothing beyond the cap, never shorter
-- than the attempt before, and exactly the cap when the power has passed it.
begin;
select plan(7);

-- Ten years are 87,660 hours: as intervals, years have 360 days when they are compared.
create temp table delay as
select
  n.attempt, p.base, p.factor, p.cap,
  rdq._delay(n.attempt, p.base, p.factor, p.cap, null) as delay
from unnest('{1, 16, 31, 32, 63, 64, 1023, 1024, 32767, 32768, 100000}'::integer[]) as n (attempt)
cross join (
  select base, factor, cap
  from unnest('{1 s, 5 s}'::interval[]) as b (base)
  cross join unnest('{2, 5, 10}'::double precision[]) as f (factor)
  cross join unnest('{1 s, 1 minute, 1 hour, 1 day, 8766 hours, 87660 hours}'::interval[]) as c (cap)
) p;

select is(count(*), 396::bigint, 'every combination has a delay') from delay where delay is not null;
select is_empty('select * from delay where delay < interval ''0''', 'none is negative');
select is_empty('select * from delay where delay > cap', 'none is beyond its cap');
select is_empty(
  $$
    select *
    from (select d.*, lag(d.delay) over (partition by d.base, d.factor, d.cap order by d.attempt) as previous from delay d) d
    where delay < previous
  $$,
  'none is shorter than that of an earlier attempt'
);
select is_empty(
  'select * from delay where attempt >= 63 and delay <> cap', 'it is exactly the cap once the power has passed it'
);

-- Policies as wild as the settings allow, and attempts as far as the type allows.
select setseed(0.5);
select is_empty(
  $$
    select *
    from (
      select
        p.*,
        rdq._delay(p.attempt, p.base, p.factor, p.cap, null) as delay,
        rdq._delay(p.attempt + 1, p.base, p.factor, p.cap, null) as next_delay
      from (
        select
          (2147483646 * power(random(), 8))::integer as attempt,
          make_interval(secs => 315576000 * power(random(), 12)) as base,
          1 + 999 * power(random(), 6) as factor,
          make_interval(secs => 315576000 * power(random(), 6)) as cap
        from generate_series(1, 20000)
      ) p
    ) d
    where delay is null or delay < interval '0' or delay > cap or next_delay < delay
  $$,
  'that holds for 20,000 policies drawn by chance'
);
select is(
  rdq._delay(2147483647, '87660 hours', 1000, '87660 hours', null), interval '87660 hours',
  'and for the largest policy at the largest attempt'
);

select * from finish();
rollback;
