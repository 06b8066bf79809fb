"""What holds in the tables after every committed step, whatever the steps were."""

from typing import Any

import psycopg

BROKEN = """
with ticket as (
  select d.task_id, d.life, 'PENDING' as status from rdq.due d
  union all
  select l.task_id, l.life, 'IN_FLIGHT' from rdq.lease l
  union all
  select x.task_id, x.life, 'DEAD' from rdq.dead x
),
holding as (
  select task_id, count(*) as tickets, min(life) as life, min(status) as status
  from ticket
  group by task_id
),
told as (
  select
    a.task_id, count(*) as attempts, max(a.attempt_no) as last_no, max(a.life) as life,
    count(*) filter (where a.outcome = 'SUCCEEDED') as successes,
    (array_agg(a.outcome order by a.attempt_no desc))[1] as last_outcome
  from rdq.attempt a
  group by a.task_id
)
select 'a task has several tickets', h.task_id from holding h where h.tickets > 1
union all
select 'a mark hides a ticket', d.task_id
from rdq.due d
cross join lateral rdq._low_water_marks(array[d.queue]) w
where d.due_at < w.due_from
union all
select 'a mark hides a lease', l.task_id
from rdq.lease l
cross join lateral rdq._low_water_marks(array[l.queue]) w
where l.expires_at < w.expires_from
union all
select 'a history is not looked at', d.task_id
from rdq.due d
join told on told.task_id = d.task_id
where not d.has_history
union all
select 'a ticket has no task', h.task_id
from holding h
where not exists (select from rdq.task t where t.id = h.task_id)
union all
select 'a task that did not succeed has no ticket', t.id
from rdq.task t
left join holding h on h.task_id = t.id
left join told a on a.task_id = t.id
where h.task_id is null and a.last_outcome is distinct from 'SUCCEEDED'
union all
select 'a task that succeeded has a ticket', h.task_id
from holding h
join told a on a.task_id = h.task_id
where a.successes > 0
union all
select 'a task succeeded and went on', a.task_id
from told a
where a.successes > 1 or (a.successes = 1 and a.last_outcome <> 'SUCCEEDED')
union all
select 'attempt numbers have holes', a.task_id from told a where a.last_no <> a.attempts
union all
select 'an attempt has no task', a.task_id
from told a
where not exists (select from rdq.task t where t.id = a.task_id)
union all
select 'an attempt is of a life that has not begun', a.task_id
from told a
join holding h on h.task_id = a.task_id
where a.life > h.life
union all
select 'an attempt began before the one before it had ended', a.task_id
from rdq.attempt a
join rdq.attempt b on b.task_id = a.task_id and b.attempt_no = a.attempt_no + 1
where b.started_at < a.finished_at
union all
select 'a dead letter keeps its dedupe key', k.task_id
from rdq.dedupe k
where not exists (
  select from holding h where h.task_id = k.task_id and h.status in ('PENDING', 'IN_FLIGHT')
)
union all
select 'a live task has lost its dedupe key', t.id
from rdq.task t
join holding h on h.task_id = t.id
where t.dedupe_key is not null and h.status in ('PENDING', 'IN_FLIGHT')
  and not exists (
    select
    from rdq.dedupe k
    where k.task_id = t.id and k.queue = t.queue
      and k.key_hash = sha256(convert_to(t.dedupe_key, 'UTF8'))
  )
union all
select 'a redrive has lost count of what it sent', r.redrive_id
from rdq.redrive_run r
where r.sent <> r.succeeded + r.died + r.cancelled
  + (select count(*) from rdq.redriven o where o.redrive_id = r.redrive_id)
union all
select 'a redrive waits for a life that has ended', o.task_id
from rdq.redriven o
where o.outcome is null
  and not exists (
    select
    from holding h
    where h.task_id = o.task_id and h.life = o.life and h.status in ('PENDING', 'IN_FLIGHT')
  )
"""


def assert_conserved(db: psycopg.Connection[Any]) -> None:
    """Check that each task has the one ticket, or the success, that its history calls for.

    The tickets are conserved, attempts are numbered without holes and never overlap, and the
    dedupe keys that are taken are exactly those of the live tasks that have one. What a redrive has
    sent is what succeeded, what died again and what is still live.

    :raises AssertionError: names what is broken, and the tasks.
    """
    broken = db.execute(BROKEN).fetchall()
    assert not broken, broken[:10]
