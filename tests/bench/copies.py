"""Copies of tasks: many rows in little time, which are as rdq's functions write them.

A few tasks go through the functions. What they leave in every table is taken out and put in many
times, with ids and times that are some seconds earlier, less each time, and at last their own. The
ids stay those of version 7, and the rows come in the order of their time. So the indexes that a
claim reads grow as they would have grown, by one leaf after the other at their end; made in another
way they would be packed in another way, and perhaps be of another height. Those that no claim reads
are made afterwards, in less time.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from psycopg.sql import SQL, Composed, Identifier

from tests.bench.contender import Connection

STEP: Final = timedelta(seconds=3, microseconds=1)
"""More than it takes to make the few; not in whole seconds, or times would be there twice."""
TABLES: Final = {"task": "id", "due": "task_id", "dead": "task_id", "attempt": "task_id"}
"""With the column of the id."""
SAMPLE: Final = SQL("""
    create temporary table few as
    select
      t.*, ('x' || left(n.digits, 12))::bit(48)::bigint as milliseconds,
      substr(n.digits, 13) as rest
    from rdq.{table} t
    cross join lateral (select replace(t.{id}::text, '-', '') as digits) n
    """)
EARLIER_ID: Final = SQL("(lpad(to_hex(milliseconds - %(milliseconds)s), 12, '0') || rest)::uuid")
EARLIER: Final = SQL("{column} - %(earlier)s")
COPY: Final = SQL("insert into rdq.{table} select {columns} from few")


def multiply(dsn: str, times: int) -> None:
    """Have so many times the tasks that there are. None of them may be held."""

    def copy(table: str) -> None:
        with Connection.connect(dsn) as session, _without_indexes_of_the_dead(session, table):
            insert = _take_out(session, table)
            for number in reversed(range(times)):
                earlier = number * STEP
                shift = {"earlier": earlier, "milliseconds": earlier // timedelta(milliseconds=1)}
                session.execute(insert, shift)

    with ThreadPoolExecutor(len(TABLES)) as pool:
        list(pool.map(copy, TABLES))


def _take_out(session: Connection, table: str) -> Composed:
    """Empty a table; return the statement that writes its rows again, earlier."""
    names = {"table": Identifier(table), "id": Identifier(TABLES[table])}
    session.execute(SAMPLE.format(**names))
    session.execute(SQL("truncate rdq.{}").format(names["table"]))
    columns = [
        EARLIER_ID
        if name == TABLES[table]
        else (EARLIER if of_time else SQL("{column}")).format(column=Identifier(name))
        for name, of_time in session.execute(
            "select attname, atttypid = 'timestamptz'::regtype from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum",
            [f"rdq.{table}"],
        )
    ]
    return COPY.format(columns=SQL(", ").join(columns), **names)


@contextmanager
def _without_indexes_of_the_dead(session: Connection, table: str) -> Iterator[None]:
    """Drop all indexes of rdq.dead but its key, and make them again at the end of the block."""
    indexes = session.execute(
        "select indexname, indexdef from pg_indexes where schemaname = 'rdq' and tablename = 'dead'"
        " and tablename = %s and indexname <> 'dead_pkey'",
        [table],
    ).fetchall()
    for name, _ in indexes:
        session.execute(SQL("drop index rdq.{}").format(Identifier(name)))
    yield
    session.execute("set local maintenance_work_mem = '1GB'")
    for _, definition in indexes:
        session.execute(definition.encode())
