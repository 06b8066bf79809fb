-- Why a task is dead after an attempt, or null while it is to be tried again: a table of values. The counts
-- include that attempt. Budgets: 8 attempts, 5 of them ambiguous, 3 vanished in a row.
begin;
select plan(34);

select is(
  rdq._verdict(
    v.outcome, v.class, v.spent, 8, v.ambiguous, 5, v.vanished, 3,
    timestamptz '2026-01-01 12:00 UTC',
    timestamptz '2026-01-01 12:00 UTC' + v.deadline::interval
  ),
  v.verdict,
  concat_ws(' ', v.outcome, v.class, format('%s spent, %s ambiguous, %s vanished', v.spent, v.ambiguous, v.vanished),
    'deadline ' || v.deadline)
)
from (
  values
    ('FAILED', 'TRANSIENT', 1, 0, 0, null, null),
    ('FAILED', 'TRANSIENT', 7, 4, 0, null, null),
    ('FAILED', 'TRANSIENT', 8, 0, 0, null, 'EXHAUSTED'),
    ('FAILED', 'TRANSIENT', 9, 0, 0, null, 'EXHAUSTED'),
    -- The ambiguous budget is for failures of that class; another class does not use it up.
    ('FAILED', 'AMBIGUOUS', 4, 4, 0, null, null),
    ('FAILED', 'AMBIGUOUS', 5, 5, 0, null, 'AMBIGUOUS'),
    ('FAILED', 'AMBIGUOUS', 6, 6, 0, null, 'AMBIGUOUS'),
    ('FAILED', 'TRANSIENT', 6, 5, 0, null, null),
    ('FAILED', 'AMBIGUOUS', 8, 4, 0, null, 'EXHAUSTED'),
    ('FAILED', 'AMBIGUOUS', 8, 5, 0, null, 'AMBIGUOUS'),
    -- Permanent is dead at once, and nothing is stronger.
    ('FAILED', 'PERMANENT', 1, 0, 0, null, 'PERMANENT'),
    ('FAILED', 'PERMANENT', 8, 5, 3, null, 'PERMANENT'),
    ('FAILED', 'PERMANENT', 1, 0, 0, '-1 hour', 'PERMANENT'),
    -- Vanished in a row.
    ('LEASE_EXPIRED', null, 1, 0, 1, null, null),
    ('LEASE_EXPIRED', null, 7, 0, 2, null, null),
    ('LEASE_EXPIRED', null, 3, 0, 3, null, 'VANISHED'),
    ('LEASE_EXPIRED', null, 8, 0, 3, null, 'VANISHED'),
    ('LEASE_EXPIRED', null, 8, 0, 1, null, 'EXHAUSTED'),
    ('LEASE_EXPIRED', null, 8, 0, 2, null, 'EXHAUSTED'),
    ('LEASE_EXPIRED', null, 2, 0, 2, '-1 second', 'DEADLINE'),
    ('LEASE_EXPIRED', null, 3, 0, 3, '-1 second', 'VANISHED'),
    -- An attempt that reported something has not vanished, whatever was before it.
    ('FAILED', 'TRANSIENT', 4, 0, 3, null, null),
    ('RELEASED', null, 3, 0, 3, null, null),
    -- Released more often than is given back, until the budget is spent: nobody wants this task.
    ('RELEASED', null, 0, 0, 0, null, null),
    ('RELEASED', null, 7, 0, 0, null, null),
    ('RELEASED', null, 8, 0, 0, null, 'UNROUTABLE'),
    ('RELEASED', null, 0, 0, 0, '-1 second', 'DEADLINE'),
    -- The next attempt would start after the deadline; at the deadline itself is not after it.
    ('FAILED', 'TRANSIENT', 1, 0, 0, '1 second', null),
    ('FAILED', 'TRANSIENT', 1, 0, 0, '0 seconds', null),
    ('FAILED', 'TRANSIENT', 1, 0, 0, '-1 second', 'DEADLINE'),
    ('FAILED', 'AMBIGUOUS', 1, 1, 0, '-1 second', 'DEADLINE'),
    -- A used-up budget says more than a deadline.
    ('FAILED', 'TRANSIENT', 8, 0, 0, '-1 second', 'EXHAUSTED'),
    ('FAILED', 'AMBIGUOUS', 5, 5, 0, '-1 second', 'AMBIGUOUS'),
    ('RELEASED', null, 8, 0, 0, '-1 second', 'UNROUTABLE')
) as v (outcome, class, spent, ambiguous, vanished, deadline, verdict);

select * from finish();
rollback;
