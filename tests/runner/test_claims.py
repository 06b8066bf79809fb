"""Work is claimed in time, whether or not somebody announces it."""

import threading
import time
from collections.abc import Sequence

import pytest

from rdq_runner import Handlers, Task, claims
from rdq_runner.sql import Functions
from tests.runner.conftest import Hold, Queue, Start
from tests.waiting import wait_until

ASLEEP = """
    select 1 from pg_stat_activity
    where application_name ~ '^rdq-runner' and datname = current_database()
      and query ~ 'rdq.(next_due_at|callbacks)' and state = 'idle'
    """


def test_a_backlog_is_worked_off_by_the_slots_that_become_free(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEAST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 3600.0)
    tasks = [queue.submit("ok") for _ in range(30)]
    start(concurrency=2, **only_notices)
    queue.wait_for("SUCCEEDED", *tasks)


def test_a_backlog_of_a_limited_handler_is_worked_off_though_slots_are_free(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEAST_PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 3600.0)
    own = Handlers()

    @own.handler("narrow", concurrency=1)
    def narrow(task: Task) -> None:
        time.sleep(0.02)

    tasks = [queue.submit("narrow") for _ in range(10)]
    start(handlers=own, concurrency=4, **only_notices)
    queue.wait_for("SUCCEEDED", *tasks)


def test_a_backlog_of_outcomes_holds_claims_up_no_longer_than_it_lasts(
    queue: Queue, start: Start, only_notices: dict[str, float]
) -> None:
    tasks = [queue.submit("ok") for _ in range(30)]
    start(concurrency=1, max_unreported=1, **only_notices)
    # A claim and a report for each: of a few milliseconds, and a busy machine takes tens.
    queue.wait_for("SUCCEEDED", *tasks, seconds=4)


def test_what_is_not_announced_is_found_while_there_is_work(
    queue: Queue,
    start: Start,
    only_notices: dict[str, float],
    hold: Hold,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 1.0)
    start(**only_notices)
    wait_until(queue.listener)
    announced = queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    queue.alter(notify=False)
    other = queue.submit("ok")
    queue.wait_for("SUCCEEDED", other)
    hold.end()
    queue.wait_for("SUCCEEDED", announced)


def test_who_had_work_looks_again_and_again_before_it_falls_asleep(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 0.5)
    queue.alter(notify=False)
    first = queue.submit("ok")
    start(**only_notices)
    queue.wait_for("SUCCEEDED", first)
    # Looks come half a second after, then one and a half, then three and a half.
    time.sleep(1.8)
    queue.wait_for("SUCCEEDED", queue.submit("ok"))


def test_after_a_claim_the_next_one_is_planned_for_what_is_due_then(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 3600.0)
    start(**only_notices)
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    queue.alter(notify=False)
    [(later,)] = queue.db.execute(
        "select rdq.submit('q', 'ok', 'x'::text, run_at => clock_timestamp() + interval '1 second')"
    )
    queue.alter(notify=True)
    announced = queue.submit("ok")
    queue.wait_for("SUCCEEDED", announced, later)


def test_handlers_begin_before_the_database_is_asked_what_is_due_next(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = 0.3
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 3600.0)
    monkeypatch.setattr(claims, "GIVE_WAY_SECONDS", pause)
    began: list[float] = []
    asked: list[float] = []
    own, ask = Handlers(), Functions.seconds_until_due

    @own.handler("note")
    def note(task: Task) -> None:
        began.append(time.monotonic())

    def note_and_ask(rdq: Functions, queues: Sequence[str] | None) -> float:
        asked.append(time.monotonic())
        return ask(rdq, queues)

    monkeypatch.setattr(Functions, "seconds_until_due", note_and_ask)
    start(handlers=own, **only_notices)
    wait_until(queue.listener)
    wait_until(lambda: asked)
    queue.submit("note")
    wait_until(lambda: began and asked[-1] > began[0])
    assert asked[-1] - began[0] > pause / 2


def test_a_retry_is_made_in_time_though_nobody_announces_it(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 3600.0)
    own, fail = Handlers(), threading.Event()

    @own.handler("fail-once")
    def fail_once(task: Task) -> None:
        if task.attempt_no == 1:
            assert fail.wait(20)
            raise ValueError

    start(handlers=own, **only_notices)
    task = queue.submit("fail-once")
    queue.wait_for("IN_FLIGHT", task)
    wait_until(lambda: queue.db.execute(ASLEEP).fetchone())
    fail.set()
    queue.wait_for("SUCCEEDED", task)


def test_a_task_that_is_handed_back_is_taken_up_again_though_nobody_announces_it(
    queue: Queue, start: Start, only_notices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LOOK_AGAIN_SECONDS", 3600.0)
    own, give_back = Handlers(), threading.Event()

    @own.handler("return-once")
    def return_once(task: Task) -> None:
        if task.attempt_no == 1:
            task.cancellation.set()
            assert give_back.wait(20)
            task.heartbeat()

    start(handlers=own, **only_notices)
    task = queue.submit("return-once")
    queue.wait_for("IN_FLIGHT", task)
    wait_until(lambda: queue.db.execute(ASLEEP).fetchone())
    queue.alter(notify=False)
    give_back.set()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["RELEASED", "SUCCEEDED"]
