"""What a task costs, in figures that no other load on the machine can change.

The bounds are some way above what is measured now: they catch a step back of another kind, such as
a statement for each task of a batch, not one of a few percent.
"""

import statistics
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from rdq_runner import Handlers, Runner, Task
from tests.bench.contenders.rdq import QUEUE, Rdq
from tests.bench.contenders.same_writes import SameWrites
from tests.bench.payloads import payloads
from tests.waiting import wait_until

BATCH = 100
BATCHES = 20
TASKS = 1_000

handlers = Handlers()


@handlers.handler("no-op")
def no_op(task: Task) -> None:
    """Do nothing."""


@pytest.fixture
def counted(db: psycopg.Connection[Any], database: str) -> str:
    """A database with the queue, whose new sessions count what they call."""
    name = db.info.dbname
    db.execute(f"alter database {name} set track_functions = 'pl'".encode())
    db.execute("select rdq.create_queue(%s)", [QUEUE])
    return database


@pytest.fixture
def session(counted: str) -> Iterator[psycopg.Connection[Any]]:
    """A session that counts; its counts are seen when it has ended."""
    with psycopg.connect(counted, autocommit=True) as connection:
        yield connection


def test_a_task_writes_little_from_its_submit_to_its_success(
    session: psycopg.Connection[Any],
) -> None:
    submits, rest = [], []
    for _ in range(BATCHES):
        submits.append(_wal(session, _submit(BATCH)))
        claim = _wal(session, f"select * from rdq.claim(array['{QUEUE}'], 'guard', {BATCH})")
        report = _wal(
            session,
            "select * from rdq.report(array(select task_id from rdq.lease order by task_id),"
            " array(select claim_token from rdq.lease order by task_id),"
            f" array_fill(null::jsonb, array[{BATCH}]))",
        )
        rest.append(claim + report)
    # The median: a checkpoint makes a batch dearer, where pages are logged whole.
    assert statistics.median(submits) / BATCH < 700
    assert statistics.median(rest) / BATCH < 830


def test_the_calls_of_a_batch_do_not_grow_with_each_task(
    counted: str, db: psycopg.Connection[Any]
) -> None:
    rdq = Rdq()
    with psycopg.connect(counted, autocommit=True) as session:
        for _ in range(BATCHES):
            rdq.submit_many(session, "no-op", payloads(BATCH))
            assert rdq.drain(session, BATCH) == BATCH
    calls = _calls(db, BATCHES)
    assert sum(calls.values()) / (BATCH * BATCHES) < 4.5, calls


def test_a_claim_and_completion_of_one_task_is_few_calls(
    counted: str, db: psycopg.Connection[Any]
) -> None:
    rdq = Rdq()
    with psycopg.connect(counted, autocommit=True) as session:
        rdq.submit_many(session, "no-op", payloads(BATCH))
        for _ in range(BATCH):
            assert rdq.drain(session, 1) == 1
    calls = _calls(db, BATCH)
    # Each costs a statement's start and end, or some, in each transaction.
    assert sum(calls.values()) / BATCH < 6, calls


@pytest.mark.parametrize(("concurrency", "bound"), [(8, 0.5), (100, 0.2)])
def test_a_runner_asks_much_less_often_than_once_a_task(
    counted: str, db: psycopg.Connection[Any], concurrency: int, bound: float
) -> None:
    rdq = Rdq()
    rdq.submit_many(db, "no-op", payloads(TASKS))
    with Runner(counted, queues=[QUEUE], handlers=handlers, concurrency=concurrency):
        wait_until(lambda: db.execute(rdq.drained.encode()).fetchall()[0][0], 60)
    calls = _calls(db, 1)
    assert calls["claim"] / TASKS < bound, calls
    assert calls["report"] / TASKS < bound, calls


def test_the_second_floor_writes_the_rows_that_rdq_writes(db: psycopg.Connection[Any]) -> None:
    SameWrites().prepare(db.info.dsn)
    assert _rows(db, SameWrites()) == _rows(db, Rdq())


def _rows(db: psycopg.Connection[Any], contender: SameWrites | Rdq) -> list[object]:
    """Return what the tables hold after submits, a drain and a redrive, then empty them."""
    tables = ("task", "due", "lease", "attempt", "dead", "redriven")

    def rows() -> object:
        with db.cursor(row_factory=dict_row) as cursor:
            return [
                [
                    # Of ids and times only that there is one.
                    {n: type(v) if isinstance(v, (UUID, datetime)) else v for n, v in row.items()}
                    for row in cursor.execute(f"select * from rdq.{table}".encode()).fetchall()
                ]
                for table in tables
            ]

    contender.submit(db, "no-op", "alone")
    contender.submit_many(db, "no-op", payloads(BATCH))
    found = [rows()]
    while contender.drain(db, BATCH):
        pass
    assert contender.executions(db) == BATCH + 1
    contender.bury(db, BATCH)
    found.append(rows())
    assert contender.redrive_all(db) == BATCH
    found.append(rows())
    db.execute(f"truncate {', '.join(f'rdq.{table}' for table in tables)}".encode())
    return found


def _submit(count: int) -> str:
    """Return a bulk submit of 200-byte payloads."""
    return (
        f"select * from rdq.submit_many('{QUEUE}', (select jsonb_agg(jsonb_build_object("
        f"'handler', 'no-op', 'payload', repeat('x', 200))) from generate_series(1, {count})))"
    )


def _wal(session: psycopg.Connection[Any], query: str) -> int:
    """Run a query; return the bytes that it logs, whatever other sessions do."""
    explain = f"explain (analyze, wal, format json) {query}".encode()
    [(plans,)] = session.execute(explain).fetchall()
    assert plans[0]["Plan"]["Actual Rows"] == BATCH
    return int(plans[0]["Plan"]["WAL Bytes"])


def _calls(db: psycopg.Connection[Any], claims: int) -> dict[str, int]:
    """Return how often each function was called by sessions that have ended: all but ours."""
    others = (
        "select 1 from pg_stat_activity where datname = current_database()"
        " and backend_type = 'client backend' and pid <> pg_backend_pid()"
    )
    wait_until(lambda: not db.execute(others).fetchall())

    def counts() -> dict[str, int]:
        rows = db.execute(
            "select funcname, calls from pg_stat_user_functions where schemaname = 'rdq'"
        ).fetchall()
        return {name: int(calls) for name, calls in rows}

    return wait_until(lambda: counts() if counts().get("claim", 0) >= claims else {})
