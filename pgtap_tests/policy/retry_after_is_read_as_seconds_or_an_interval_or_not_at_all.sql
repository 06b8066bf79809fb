-- What a report's retry_after asks for: a table of values. Garbage asks for nothing, and nothing raises.
begin;
select plan(32);

select is(
  rdq._capped_retry_after(rdq._parse_retry_after(v.given::jsonb), '1 hour'), v.wait::interval,
  'retry_after ' || coalesce(v.given, 'is not given')
)
from (
  values
    (null, null),
    ('null', null),
    ('120', '2 minutes'),
    ('"120"', '2 minutes'),
    ('1.5', '1.5 s'),
    ('"1.5"', '1.5 s'),
    ('0', '0'),
    ('"0"', '0'),
    ('-5', '0'),
    ('"-5"', '0'),
    ('"5 minutes"', '5 minutes'),
    ('"01:00:00"', '1 hour'),
    ('"PT90S"', '90 s'),
    ('86400', '1 day'),
    -- Whoever asks for more than a day gets a day.
    ('86401', '1 day'),
    ('"2 days"', '1 day'),
    ('"170000000 years"', '1 day'),
    ('"-170000000 years"', '0'),
    ('9999999999', '1 day'),
    ('99999999999999999999', '1 day'),
    ('"99999999999999999999"', '1 day'),
    ('1e300', '1 day'),
    ('-1e300', '0'),
    -- Garbage.
    ('"garbage"', null),
    ('""', null),
    ('" "', null),
    ('"Wed, 21 Oct 2015 07:28:00 GMT"', null),
    ('true', null),
    ('{}', null),
    ('[]', null),
    ('[120]', null),
    ('{"seconds": 120}', null)
) as v (given, wait);

select * from finish();
rollback;
