"""A crowded database: a million dead letters, a million tasks of another day, and a few to do."""

from typing import Any

import psycopg

TABLES = ("task", "due", "lease", "dead", "attempt", "dedupe", "redrive_run", "queue")

_QUEUE = """
select rdq.create_queue('q', '{"backoff_base": 0, "jitter": 0, "max_attempts": 1000,
  "max_releases": 1000, "vanish_limit": 1000, "keep_dead": "1 year", "give_up_after": "1 year"}')
"""
# Straight into the tables, as nobody should: so many calls would take minutes.
_CROWD = """
create temporary table member as
select
  n, rdq.uuid_v7() as id, clock_timestamp() as at, now() + interval '1 year' as deadline,
  case
    when n <= 1000000 then 'dead'
    when n <= 2000000 then 'future'
    when n <= 2100000 then 'leased'
    else 'ready'
  end as place,
  case when n % 200 = 0 then 'rare' else 'h' end as handler
from generate_series(1, 2100050) n;

insert into rdq.task
select id, 'q', handler, null, 'payload', 'text/plain', '{}', null, deadline, null, at from member;

insert into rdq.attempt
select
  id, 1, 0, 'q', 'FAILED', 'PERMANENT', 'Error', 'message', null, null, 'worker', null, at, at
from member
where place = 'dead';

insert into rdq.dead
select id, 'q', handler, 0, at, 'PERMANENT', 'PERMANENT', 'Error', 'message', md5(handler), null
from member
where place = 'dead';

insert into rdq.due
select id, 'q', case place when 'ready' then at else at + interval '1 day' end, 0, deadline
from member
where place in ('future', 'ready');

insert into rdq.lease
select id, gen_random_uuid(), 'q', 0, deadline, 'worker', null, at, at + interval '1 day'
from member
where place = 'leased';

drop table member;
"""


def create_queue(db: psycopg.Connection[Any]) -> None:
    """Create the queue; nobody but the test gathers statistics from now on."""
    db.execute(_QUEUE)
    for table in TABLES:
        db.execute(f"alter table rdq.{table} set (autovacuum_enabled = off)")


def analyze(db: psycopg.Connection[Any]) -> None:
    """Gather the statistics of what is there now."""
    for table in TABLES:
        db.execute(f"analyze rdq.{table}")


def empty(db: psycopg.Connection[Any]) -> None:
    """Delete every task, and leave the pages."""
    for table in TABLES[:-1]:
        db.execute(f"delete from rdq.{table}")


def fill(db: psycopg.Connection[Any]) -> None:
    """Let the crowd in."""
    db.execute(_CROWD)
