begin;
select plan(8);

select is(
  rdq._capped_retry_after(v.retry_after::interval, v.cap::interval), v.wait::interval,
  format('%s with a cap of %s', v.retry_after, v.cap)
)
from (
  values
    ('2 hours', '1 minute', '2 hours'),
    ('2 days', '1 minute', '1 day'),
    ('2 days', '7 days', '2 days'),
    ('8 days', '7 days', '7 days'),
    ('170000000 years', '87660 hours', '87660 hours'),
    ('-2 days', '1 hour', '0'),
    ('0', '1 hour', '0'),
    (null, '1 hour', null)
) as v (retry_after, cap, wait);

select * from finish();
rollback;
