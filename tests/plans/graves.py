"""A million dead letters of 500 causes over a month, some with long stacks; and tasks to do."""

from typing import Any

import psycopg

TABLES = ("task", "due", "dead", "attempt")
INDEXES = ("dead_by_time", "dead_by_queue", "dead_by_fingerprint", "dead_by_cause")

# The rare ones are the oldest, where a walk from the newest comes last.
_LETTERS = """
create temporary table letter as
select
  n, n <= 5 as rare,
  ('01890000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id,
  case when n <= 5 then 'rare' else 'q' || n % 4 end as queue,
  case when n <= 5 then 'rare' else 'handler-' || n % 20 end as handler,
  clock_timestamp() - (1000001 - n) * interval '2.592 seconds' as dead_at
from generate_series(1, 1000000) n;

insert into rdq.task
select id, queue, handler, null, 'payload', 'text/plain', '{}', null, null, null, dead_at
from letter;

insert into rdq.dead
select
  id, queue, handler, 0, dead_at,
  case when rare then 'UNROUTABLE' when n % 5 = 0 then 'VANISHED' else 'EXHAUSTED' end,
  case when rare then 'AMBIGUOUS' else 'TRANSIENT' end,
  case when rare then 'Rare' else 'net.Error' || n % 100 end,
  'connection refused while charging order ' || n,
  case when rare then 'rare' else lpad(to_hex(n % 500), 16, 'cafe') end, 'v' || n / 300000
from letter;

insert into rdq.task
select rdq.uuid_v7(), 'ready', 'h', null, 'payload', 'text/plain', '{}', null, null, null, now()
from generate_series(1, 100);

insert into rdq.due
select t.id, t.queue, t.created_at, 0, null from rdq.task t where t.queue = 'ready';
"""
# Stored out of line, where a look that reads them is seen.
_STACKS = """
alter table rdq.attempt alter stack set storage external;
alter table rdq.task alter payload set storage external;

create temporary table noise as
select string_agg(md5(n::text), '') as noise from generate_series(1, 2048) n;

insert into rdq.attempt
select
  l.id, 1, 0, 'q', 'FAILED', 'TRANSIENT', 'net.Error', 'message', n.noise, null, 'worker', null,
  l.dead_at, l.dead_at
from letter l
cross join noise n
where l.n <= 5 or l.n > 998000;

update rdq.task t set payload = convert_to(n.noise, 'UTF8')
from letter l
cross join noise n
where t.id = l.id and (l.n <= 5 or l.n > 999500);

drop table letter;
"""


def dig(db: psycopg.Connection[Any]) -> None:
    """Fill an empty database; its statistics say that it is empty, and nobody vacuums."""
    for queue in ("q0", "q1", "q2", "q3", "rare", "ready", "empty"):
        db.execute("select rdq.create_queue(%s)", [queue])
    for table in TABLES:
        db.execute(f"alter table rdq.{table} set (autovacuum_enabled = off)")
        db.execute(f"analyze rdq.{table}")
    # Straight into the table, as nobody should, and its indexes afterwards: it takes seconds.
    indexes = db.execute(
        "select indexdef from pg_indexes where schemaname = 'rdq' and indexname = any (%s)",
        [list(INDEXES)],
    ).fetchall()
    assert len(indexes) == len(INDEXES)
    for index in INDEXES:
        db.execute(f"drop index rdq.{index}")
    db.execute(_LETTERS)
    for (definition,) in indexes:
        db.execute(definition)
    db.execute(_STACKS)
