begin;
select plan(9);

select is(
  rdq._delay(v.attempt, '1 s', 2, '5 s', v.ladder::interval[]), v.delay::interval,
  format('attempt %s on %s', v.attempt, v.ladder)
)
from (
  values
    (1, '{1 minute, 10 minutes, 3 hours}', '1 minute'),
    (2, '{1 minute, 10 minutes, 3 hours}', '10 minutes'),
    -- Longer than backoff_cap: a ladder means what it says.
    (3, '{1 minute, 10 minutes, 3 hours}', '3 hours'),
    (4, '{1 minute, 10 minutes, 3 hours}', '3 hours'),
    (100000, '{1 minute, 10 minutes, 3 hours}', '3 hours'),
    (0, '{1 minute, 10 minutes}', '1 minute'),
    (1, '{0 s}', '0 s'),
    (9, '{0 s}', '0 s'),
    -- It may go down.
    (2, '{1 hour, 1 s}', '1 s')
) as v (attempt, ladder, delay);

select * from finish();
rollback;
