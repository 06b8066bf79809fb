"""H1: a notice is a hint. It is small, one a queue and transaction, and work goes on without."""

import json
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from rdq_runner import submit_many
from tests.conftest import Connect
from tests.runner.conftest import Queue, Start
from tests.waiting import wait_until

LONGEST_NAME = "n" * 240

SCHEDULES = {
    "a submit": "select rdq.submit('q', 'ok', 'x')",
    "a submit with a key": "select rdq.submit('q', 'ok', 'x', dedupe_key => now()::text)",
    "a submit with an id": "select rdq.submit('q', 'ok', 'x', task_id => gen_random_uuid())",
    "a bulk submit": """select rdq.submit_many('q', '[{"handler": "ok", "payload": "x"}]')""",
    "a redrive": "select rdq.redrive((select task_id from rdq.dead_letters limit 1))",
    "a bulk redrive": "select rdq.redrive_where('q')",
}


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
        queue.wait_for("SUCCEEDED", queue.submit("ok"))
    assert heard(hears, queue.db) == []


def into_the_half_second(db: psycopg.Connection[Any]) -> float:
    """Return how far the server's clock is in its half second, in milliseconds."""
    row = db.execute("select 1000 * extract(epoch from clock_timestamp())").fetchone()
    assert row
    return float(row[0]) % 500


def leave_a_dead_letter(queue: Queue) -> None:
    """Leave a dead letter in the queue, for what redrives."""
    queue.db.execute(
        "select rdq.submit('q', 'ok', 'x'::text, error => %s)", [Jsonb({"class": "PERMANENT"})]
    )


def fill(queue: Queue) -> None:
    """Let there be a task in the queue for every millisecond of the next minute."""
    queue.db.execute("""
        insert into rdq.due (task_id, queue, due_at, life)
        select gen_random_uuid(), 'q', clock_timestamp() + make_interval(secs => ms / 1000.0), 0
        from generate_series(-500, 60000) ms
        """)


def heard_in_the_middle(
    schedule: Callable[[], object], hears: psycopg.Connection[Any], db: psycopg.Connection[Any]
) -> list[tuple[str, str]]:
    """Return what is heard of a call that was not near a half second's beginning."""
    while True:
        wait_until(lambda: 100 < into_the_half_second(db) < 350)
        heard(hears, db)
        began = time.monotonic()
        schedule()
        if time.monotonic() - began < 0.1:
            return [notice for notice in heard(hears, db) if notice[0] == "rdq_due"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_queue_is_announced_unless_its_runners_are_busy(
    queue: Queue, hears: psycopg.Connection[Any], schedule: str
) -> None:
    def call() -> None:
        leave_a_dead_letter(queue)
        queue.db.execute(SCHEDULES[schedule].encode())

    assert heard_in_the_middle(call, hears, queue.db) == [("rdq_due", "q")]
    fill(queue)
    # A call that a busy machine stretches to 20 ms is one of an old transaction.
    wait_until(lambda: heard_in_the_middle(call, hears, queue.db) == [])


def test_as_long_as_every_task_is_taken_each_is_announced(
    queue: Queue, hears: psycopg.Connection[Any]
) -> None:
    for _ in range(50):
        queue.submit("ok")
        assert heard(hears, queue.db) == [("rdq_due", "q")]
        assert queue.db.execute("select from rdq.claim('{q}', 'tester')").fetchall()


def test_a_queue_whose_tasks_nobody_takes_is_announced_in_every_half_second(
    queue: Queue, hears: psycopg.Connection[Any]
) -> None:
    announced: list[tuple[bool, bool]] = []

    def seen() -> set[tuple[bool, bool]]:
        task = queue.submit("ok")
        [(at,)] = queue.db.execute(
            "select 1000 * extract(epoch from due_at)::float8 from rdq.due where task_id = %s",
            [task],
        )
        announced.append((at % 500 < 20, bool(heard(hears, queue.db))))
        return {*announced} & {(True, True), (False, False)}

    wait_until(lambda: len(seen()) == 2)
    assert (True, False) not in announced


def test_an_old_transaction_announces_also_in_a_busy_queue(
    queue: Queue, hears: psycopg.Connection[Any]
) -> None:
    fill(queue)

    def call() -> None:
        with queue.db.transaction():
            wait_until(lambda: age_ms(queue.db) > 20)
            queue.submit("ok")

    assert heard_in_the_middle(call, hears, queue.db) == [("rdq_due", "q")]


def test_a_transaction_that_submits_for_long_and_goes_back_to_a_savepoint_announces_what_is_left(
    queue: Queue, hears: psycopg.Connection[Any]
) -> None:
    with queue.db.transaction():
        queue.submit("ok")
        with queue.db.transaction(force_rollback=True):
            for ms in range(0, 100, 5):
                wait_until(lambda ms=ms: age_ms(queue.db) > ms)  # type: ignore[misc]
                queue.submit("ok")
        with queue.db.transaction():
            queue.submit("ok")
    assert heard(hears, queue.db) == [("rdq_due", "q")]
    with queue.db.transaction():
        with queue.db.transaction(force_rollback=True):
            queue.submit("ok")
            wait_until(lambda: age_ms(queue.db) > 30)
        queue.submit("ok")
    assert heard(hears, queue.db) == [("rdq_due", "q")]


def age_ms(db: psycopg.Connection[Any]) -> float:
    """Return for how long the transaction has been open."""
    row = db.execute("select 1000 * extract(epoch from clock_timestamp() - now())").fetchone()
    assert row
    return float(row[0])
