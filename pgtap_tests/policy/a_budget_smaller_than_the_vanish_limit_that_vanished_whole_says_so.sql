begin;
select plan(3);

select is(
  rdq._verdict('LEASE_EXPIRED', null, v.spent, 2, 0, 5, v.vanished, 3, now(), null), v.verdict,
  format('%s of 2 attempts spent, %s of them vanished in a row', v.spent, v.vanished)
)
from (values (1, 1, null), (2, 2, 'VANISHED'), (2, 1, 'EXHAUSTED')) as v (spent, vanished, verdict);

select * from finish();
rollback;
