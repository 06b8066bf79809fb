-- delay n = least(cap, base × factor^(n − 1)): a table of values.
begin;
select plan(28);

select is(
  rdq._delay(v.attempt, v.base::interval, v.factor, v.cap::interval, null), v.delay::interval,
  format('attempt %s: %s × %s^%s, at most %s', v.attempt, v.base, v.factor, v.attempt - 1, v.cap)
)
from (
  values
    (1, '10 s', 2, '60 s', '10 s'),
    (2, '10 s', 2, '60 s', '20 s'),
    (3, '10 s', 2, '60 s', '40 s'),
    (4, '10 s', 2, '60 s', '60 s'),
    (5, '10 s', 2, '60 s', '60 s'),
    -- The defaults.
    (1, '1 minute', 2, '1 hour', '1 minute'),
    (6, '1 minute', 2, '1 hour', '32 minutes'),
    (7, '1 minute', 2, '1 hour', '1 hour'),
    (8, '1 minute', 2, '1 hour', '1 hour'),
    -- Where the power still fits.
    (16, '1 s', 2, '10 years', '32768 s'),
    (16, '1 s', 2, '1 hour', '1 hour'),
    (28, '1 s', 2, '10 years', '134217728 s'),
    (31, '1 s', 2, '10 years', '10 years'),
    (5, '5 s', 5, '1 day', '3125 s'),
    (5, '5 s', 10, '1 day', '50000 s'),
    (16, '5 s', 5, '10 years', '10 years'),
    (3, '4 s', 1.5, '1 day', '9 s'),
    (3, '0.001 s', 2, '1 day', '0.004 s'),
    -- A factor of one is a constant delay, for ever.
    (1, '7 s', 1, '1 day', '7 s'),
    (100000, '7 s', 1, '1 day', '7 s'),
    (2147483647, '7 s', 1, '1 day', '7 s'),
    -- A base at or beyond the cap is the cap.
    (1, '60 s', 2, '60 s', '60 s'),
    (1, '2 hours', 2, '60 s', '60 s'),
    -- Nothing to wait for.
    (1, '0 s', 2, '60 s', '0 s'),
    (100000, '0 s', 2, '60 s', '0 s'),
    (5, '10 s', 2, '0 s', '0 s'),
    -- What is before the first attempt counts as the first.
    (0, '10 s', 2, '60 s', '10 s'),
    (-5, '10 s', 2, '60 s', '10 s')
) as v (attempt, base, factor, cap, delay);

select * from finish();
rollback;
