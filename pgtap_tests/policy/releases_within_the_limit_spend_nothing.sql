begin;
select plan(7);

select is(
  rdq._spent(v.runs, v.releases, v.max_releases), v.spent::bigint,
  format('%s runs and %s releases of which %s are given back', v.runs, v.releases, v.max_releases)
)
from (
  values
    (0, 0, 10, 0),
    (3, 0, 10, 3),
    (3, 10, 10, 3),
    (3, 11, 10, 4),
    (0, 25, 10, 15),
    (2, 1, 0, 3),
    (0, 10000, 10000, 0)
) as v (runs, releases, max_releases, spent);

select * from finish();
rollback;
