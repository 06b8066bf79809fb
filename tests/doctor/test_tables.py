"""Tables and indexes that are not kept well, and what the doctor costs beside full ones."""

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.conftest import Connect, Connection
from tests.doctor.conftest import advice, found
from tests.plans import pages

ROWS = 100_000
OFF = "warning: autovacuum is switched off for it"
PAGES = 1000
"""At most a thousand entries of each index for each queue."""

FILL = {
    "due": """
        insert into rdq.due (task_id, queue, due_at, life)
        select gen_random_uuid(), 'q', clock_timestamp() + n * interval '1 second', 0
        from generate_series(1, %s) n
        """,
    "dead": """
        insert into rdq.dead (task_id, queue, handler, life, dead_at, reason, fingerprint)
        select gen_random_uuid(), 'q', 'h', 0, clock_timestamp(), 'PERMANENT', 'f'
        from generate_series(1, %s) n
        """,
    "attempt": """
        insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, started_at, finished_at)
        select gen_random_uuid(), 1, 0, 'q', 'SUCCEEDED', clock_timestamp(), clock_timestamp()
        from generate_series(1, %s) n
        """,
}


def fill(db: Connection, table: str, rows: int = ROWS) -> None:
    """Write rows straight into a table."""
    db.execute(FILL[table].encode(), [rows])


def flush(db: Connection) -> None:
    """Let the server know what this session has counted."""
    db.execute("select pg_stat_force_next_flush()")
    db.execute("select 1")


@pytest.fixture
def unkept(db: Connection) -> Connection:
    """The tables are cleaned up and counted by nobody but the test, and the doctor knows it."""
    for table in FILL:
        db.execute(f"alter table rdq.{table} set (autovacuum_enabled = off)".encode())
        db.execute(f"vacuum (analyze) rdq.{table}".encode())
    return db


def test_a_table_without_autovacuum_is_found(db: Connection) -> None:
    db.execute("alter table rdq.due set (autovacuum_enabled = off)")
    assert found(db) == {"table rdq.due": "warning: autovacuum is switched off for it"}
    db.execute(advice(db, "table rdq.due").encode())
    assert found(db) == {}


def test_removed_rows_that_nobody_cleans_up_are_found(db: Connection) -> None:
    db.execute("alter table rdq.due set (autovacuum_enabled = off)")
    fill(db, "due", ROWS + 1)
    db.execute("delete from rdq.due where ctid <> (select min(ctid) from rdq.due)")
    flush(db)
    assert found(db)["table rdq.due"] == OFF, "a hundred thousand may wait"
    db.execute("delete from rdq.due")
    flush(db)
    assert found(db)["table rdq.due"].splitlines() == [
        "warning: 100001 removed rows wait to be cleaned up, it was never done",
        OFF,
    ]
    db.execute(advice(db, "table rdq.due").encode())
    assert found(db)["table rdq.due"] == OFF


def test_removed_rows_of_a_moment_ago_are_not_found(unkept: Connection) -> None:
    fill(unkept, "due", 2 * ROWS)
    unkept.execute("delete from rdq.due")
    flush(unkept)
    assert found(unkept)["table rdq.due"] == OFF, "it was vacuumed a moment ago"


def test_an_index_that_is_not_valid_is_found(db: Connection) -> None:
    subject = "index rdq.twice"
    fill(db, "due", 2)
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.execute("create unique index concurrently twice on rdq.due (queue)")
    assert found(db)[subject] == (
        "error: it is not valid, so nothing uses it: creating or rebuilding it failed"
    )
    db.execute("delete from rdq.due where ctid = (select min(ctid) from rdq.due)")
    db.execute(advice(db, subject).encode())
    assert subject not in found(db)


def bloated(db: Connection, least_bytes: int) -> set[str]:
    """Return what is four times as large as it need be, of more than so many bytes."""
    rows = db.execute("select subject from rdq._doctor_bloat(%s)", [least_bytes])
    return {subject for (subject,) in rows}


def test_what_takes_four_times_its_size_is_found_but_nothing_small(unkept: Connection) -> None:
    db = unkept
    for table in FILL:
        fill(db, table, 30_000)
    flush(db)
    assert bloated(db, 100_000) == set(), "before statistics"
    db.execute("vacuum (analyze) rdq.due, rdq.dead, rdq.attempt")
    assert bloated(db, 100_000) == set(), "full tables"
    db.execute("delete from rdq.due where task_id > '10000000-0000-0000-0000-000000000000'")
    db.execute("vacuum (analyze) rdq.due")
    expected = {"table rdq.due", "index rdq.due_pkey", "index rdq.due_by_time"}
    assert bloated(db, 100_000) == expected
    assert not any("it takes" in words for words in found(db).values()), "of a few megabytes"
    for (statement,) in db.execute(
        "select advice from rdq._doctor_bloat(100000) order by subject"
    ).fetchall():
        db.execute(statement.encode())
    assert bloated(db, 100_000) == set()


@pytest.mark.parametrize("size", [1, 100, 3000, 50_000])
def test_tables_as_rdq_fills_them_are_not_taken_for_bloated(db: Connection, size: int) -> None:
    db.execute("select rdq.create_queue('q')")
    error = {"type": "E", "class": "PERMANENT", "stack": "s" * size}
    task = {"handler": "h", "payload": "x" * size, "error": error}
    tasks = [task] * (2000 if size < 10_000 else 100)
    db.execute("select count(*) from rdq.submit_many('q', %s)", [Jsonb(tasks)])
    db.execute("analyze")
    assert bloated(db, 16_384) == set()


def test_the_doctor_reads_little_beside_full_tables(unkept: Connection, connect: Connect) -> None:
    db = unkept
    # Statistics that know one queue, and many to look at: each way that is not by index costs.
    db.execute("select rdq.create_queue('q' || nullif(n, 0)) from generate_series(1, 30) n")
    db.execute("select rdq.create_queue('q')")
    for table in FILL:
        fill(db, table)
    costs = {"empty tables": touched(connect())}
    db.execute("analyze rdq.due, rdq.dead, rdq.attempt")
    costs["full tables"] = touched(connect())
    db.execute("update rdq.due set due_at = due_at - interval '1 year'")
    costs["all due"] = touched(connect())
    assert all(cost < PAGES for cost in costs.values()), costs
    [(size,)] = db.execute("select min(relpages) from pg_class where relname = any (%s)", [[*FILL]])
    assert size > PAGES / 2, "reading one of the tables would be noticed"


def touched(session: Connection) -> int:
    """Return how many pages of rdq's tables the doctor touches."""
    before = pages.so_far(session)
    found(session)
    return pages.so_far(session) - before
