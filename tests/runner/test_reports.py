"""The work is done, and its report fails: it is reported later, and never done again."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from rdq_runner import Handlers, Task, sessions
from tests.conftest import Connect
from tests.runner.conftest import Hold, Queue, Start
from tests.waiting import wait_until

BLOCKED = """
    from pg_stat_activity
    where application_name ~ '^rdq-runner' and datname = current_database()
      and query ~ 'from rdq.report' and wait_event_type = 'Lock'
    """


def by_statement_timeout(queue: Queue) -> None:
    """Let the server end statements that take long, in the sessions to come."""
    name = queue.db.info.dbname
    queue.db.execute(f"alter database \"{name}\" set statement_timeout = '500 ms'")


def by_reset(queue: Queue) -> None:
    """Cut the connections of reports."""
    queue.db.execute(f"select pg_terminate_backend(pid) {BLOCKED}")


@pytest.mark.parametrize("fail", [by_statement_timeout, by_reset])
def test_a_report_that_fails_is_repeated_while_the_lease_is_kept(
    queue: Queue,
    start: Start,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[[Queue], None],
) -> None:
    # While a report is under way its leases are locked; so it is nearly all the time.
    monkeypatch.setattr(sessions, "LONGEST_PAUSE_SECONDS", 0.05)
    queue.alter(lease="2 seconds")
    done: list[UUID] = []
    handlers = Handlers()

    @handlers.handler("note")
    def note(task: Task) -> None:
        done.append(task.id)

    fail(queue)
    start(handlers=handlers)
    blocker = connect(autocommit=False)
    blocker.execute("lock table rdq.attempt in share mode")
    tasks = [queue.submit("note") for _ in range(5)]
    tries: set[datetime] = set()
    end = time.monotonic() + 4.5

    def has_failed_for_longer_than_the_lease() -> bool:
        kept = "select bool_and(expires_at > clock_timestamp()) from rdq.lease"
        assert queue.db.execute(kept).fetchone() != (False,)
        blocked = queue.db.execute(f"select query_start {BLOCKED}").fetchall()
        tries.update(query_start for (query_start,) in blocked)
        if blocked:
            fail(queue)
        return len(tries) >= 4 and time.monotonic() > end

    wait_until(has_failed_for_longer_than_the_lease, 20)
    assert queue.in_flight() == 5
    blocker.rollback()
    queue.wait_for("SUCCEEDED", *tasks)
    assert sorted(done) == sorted(tasks)
    for task in tasks:
        assert queue.outcomes(task) == ["SUCCEEDED"]


def test_a_lease_that_another_session_holds_keeps_no_other_outcome_back(
    queue: Queue, start: Start, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    # The functions have a bound of their own; this one makes the test short where it counts.
    queue.db.execute(f"alter database \"{queue.db.info.dbname}\" set lock_timeout = '500 ms'")
    own, end = Handlers(), threading.Event()

    @own.handler("hold")
    def wait(task: Task) -> None:
        assert end.wait(30)

    @own.handler("ok")
    def ok(task: Task) -> None:
        """Succeed."""

    start(handlers=own, concurrency=8)
    held, *others = [queue.submit("hold") for _ in range(8)]
    queue.wait_for("IN_FLIGHT", held, *others)
    lunch = connect(autocommit=False)
    lunch.execute("select rdq.cancel(%s)", [held])
    end.set()
    queue.wait_for("SUCCEEDED", *others)
    # And those that come later.
    for _ in range(3):
        queue.wait_for("SUCCEEDED", queue.submit("ok"), seconds=10)
    assert queue.status(held) == "IN_FLIGHT"
    wait_until(lambda: "another session holds the task" in caplog.messages)
    lunch.rollback()
    queue.wait_for("SUCCEEDED", held)
    for task in (held, *others):
        assert queue.outcomes(task) == ["SUCCEEDED"]
    assert {m for m in caplog.messages if m.startswith(("database", "others"))} == set()


def test_a_transaction_whose_task_another_session_holds_is_rolled_back_and_not_failed(
    queue: Queue, start: Start, connect: Connect
) -> None:
    queue.db.execute(f"alter database \"{queue.db.info.dbname}\" set lock_timeout = '500 ms'")
    queue.db.execute("create table public.trace (task_id uuid)")
    own, end = Handlers(), threading.Event()

    @own.handler("note", transactional=True)
    def note(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("insert into public.trace values (%s)", [task.id])
        assert end.wait(30)

    start(handlers=own)
    task = queue.submit("note")
    queue.wait_for("IN_FLIGHT", task)
    lunch = connect(autocommit=False)
    lunch.execute("select rdq.cancel(%s)", [task])
    end.set()
    waiting = (
        "select 1 from pg_stat_activity where query ~ 'rdq.release' and wait_event_type = 'Lock'"
    )
    wait_until(lambda: queue.db.execute(waiting).fetchone())
    lunch.rollback()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["RELEASED", "SUCCEEDED"]
    assert len(queue.db.execute("select from public.trace").fetchall()) == 1


def test_a_report_that_came_too_late_is_noted_on_the_attempt_that_vanished(
    queue: Queue, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    queue.alter(lease="3 seconds", ladder=["1 hour"])
    queue.db.execute("alter function rdq.report rename to report_away")
    start()
    task = queue.submit("ok")
    wait_until(lambda: "database unavailable" in caplog.messages)
    queue.take_back(task)
    queue.db.execute("alter function rdq.report_away rename to report")
    queue.wait_for_late_report(task)
    [attempt] = queue.history(task)
    assert (attempt.outcome, attempt.late_outcome) == ("LEASE_EXPIRED", "SUCCEEDED")
    assert queue.status(task) == "PENDING"


def test_a_report_that_waits_does_not_hold_up_the_leases_of_those_that_run(
    queue: Queue, start: Start, connect: Connect, hold: Hold
) -> None:
    queue.alter(lease="3 seconds")
    start()
    running = queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    blocker = connect(autocommit=False)
    blocker.execute("lock table rdq.attempt in share mode")
    # Its report has the lease in its hands, and waits.
    reported = queue.submit("ok")
    wait_until(lambda: queue.db.execute(f"select {BLOCKED}").fetchall())
    kept = "select expires_at > clock_timestamp() from rdq.lease where task_id = %s"
    end = time.monotonic() + 6
    while time.monotonic() < end:
        assert queue.db.execute(kept, [running]).fetchone() == (True,)
        time.sleep(0.05)
    blocker.rollback()
    hold.end()
    queue.wait_for("SUCCEEDED", running, reported)
    assert queue.outcomes(running) == queue.outcomes(reported) == ["SUCCEEDED"]
