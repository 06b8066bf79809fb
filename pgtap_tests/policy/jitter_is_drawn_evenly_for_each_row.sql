begin;
select plan(9);

select setseed(0.25);
create temp table drawn as
select jitter, rdq._jittered('100 s', jitter) as delay
from unnest('{0, 0.2, 1}'::double precision[]) as j (jitter)
cross join generate_series(1, 5000);

select is(min(delay), interval '100 s', 'without jitter the delay is exact') from drawn where jitter = 0;
select is(max(delay), interval '100 s', 'for every row') from drawn where jitter = 0;
select cmp_ok(min(delay), '>=', interval '80 s', 'a jitter of 0.2 takes at most a fifth off')
from drawn
where jitter = 0.2;
select cmp_ok(max(delay), '<=', interval '120 s', 'and adds at most a fifth') from drawn where jitter = 0.2;
select cmp_ok(min(delay), '>=', interval '0', 'the largest jitter makes no delay negative')
from drawn
where jitter = 1;
select cmp_ok(max(delay), '<=', interval '200 s', 'and at most doubles it') from drawn where jitter = 1;

select cmp_ok(
  count(distinct delay), '>', 4900::bigint, 'each row has a draw of its own, not one of a few values'
)
from drawn
where jitter = 0.2;
-- A tenth of 5,000 is 500 ± 21.
select is(count(*), 10::bigint, 'every tenth of the band has its share')
from (
  select count(*) as size
  from drawn
  where jitter = 0.2
  group by width_bucket(extract(epoch from delay), 80, 120, 10)
) tenth
where size > 350;
select is(rdq._jittered('0', 1), interval '0', 'no delay stays no delay');

select * from finish();
rollback;
