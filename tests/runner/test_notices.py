"""H1: a notice is a hint. It is small, one a queue and transaction, and work goes on without."""

import json
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from rdq_runner import submit_many
from tests.conftest import Connect
from tests.runner.conftest import Queue, Start

LONGEST_NAME = "n" * 240


@pytest.fixture
def hears(connect: Connect) -> psycopg.Connection[Any]:
    """A session that hears what is due and what is dead."""
    session = connect()
    session.execute("listen rdq_due")
    session.execute("listen rdq_dead")
    return session


def heard(session: psycopg.Connection[Any], db: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Return all notices up to now: channel and payload."""
    session.execute("listen test_end")
    db.execute("notify test_end")
    notices: list[tuple[str, str]] = []
    for notice in session.notifies(timeout=10):
        if notice.channel == "test_end":
            return notices
        notices.append((notice.channel, notice.payload))
    raise AssertionError("the last notice was not heard")


def test_however_much_is_submitted_a_queue_is_announced_once(
    queue: Queue, hears: psycopg.Connection[Any]
) -> None:
    queue.db.execute("select rdq.create_queue(%s)", [LONGEST_NAME])
    with queue.db.transaction():
        submit_many(queue.db, "q", [{"handler": "ok", "payload": n} for n in range(10_000)])
        for name in ("q", LONGEST_NAME):
            queue.db.execute(
                "select rdq.submit(%s, %s, %s::text)", [name, LONGEST_NAME, "x" * 2**20]
            )
    assert heard(hears, queue.db) == [("rdq_due", "q"), ("rdq_due", LONGEST_NAME)]


def test_a_dead_letter_with_the_longest_names_is_announced(
    queue: Queue, hears: psycopg.Connection[Any]
) -> None:
    queue.db.execute("select rdq.create_queue(%s)", [LONGEST_NAME])
    error = {"type": "t" * 10_000, "message": "m" * 100_000, "class": "PERMANENT"}
    queue.db.execute(
        "select rdq.submit(%s, %s, 'x'::text, error => %s)",
        [LONGEST_NAME, LONGEST_NAME, Jsonb(error)],
    )
    [(channel, payload)] = heard(hears, queue.db)
    assert channel == "rdq_dead"
    assert json.loads(payload)["handler"] == LONGEST_NAME


def test_without_notices_a_queue_is_polled(
    queue: Queue, start: Start, hears: psycopg.Connection[Any]
) -> None:
    queue.alter(notify=False)
    start(poll_interval=0.2)
    for _ in range(3):
        queue.wait_for("SUCCEEDED", queue.submit("ok"), seconds=5)
    assert heard(hears, queue.db) == []
