"""What the options of a handler do, and those of its queue."""

import asyncio
import threading
import time
from datetime import timedelta

import pytest

from rdq_runner import Handlers, Runner, Task, coroutines, overdue
from rdq_runner.overdue import TooManyOverdue
from tests.runner.conftest import Hold, Queue, Run, Start
from tests.runner.ordeals import handlers, registered, run
from tests.waiting import LONGEST_SECONDS

TIMED_OUT = "rdq_runner.TimedOut"


def test_a_queue_has_a_timeout_for_handlers_that_have_none(queue: Queue, start: Start) -> None:
    queue.alter(ladder=["1 hour"], handler_timeout="500 milliseconds")
    own = Handlers()
    own.handler("short")(run)
    own.handler("long", timeout=timedelta(seconds=60))(run)
    start(handlers=own)
    short, long = queue.submit("short", do="spin"), queue.submit("long", do="spin")
    queue.wait_for_outcomes("FAILED", short)
    assert queue.history(short)[0].error_type == TIMED_OUT
    queue.wait_for("SUCCEEDED", long)


def test_as_many_hanging_handlers_as_slots_leave_the_runner_able_to_work(
    queue: Queue, start: Start, hold: Hold
) -> None:
    queue.alter(ladder=["1 hour"])

    def wait(task: Task) -> None:
        while hold.file.exists():
            time.sleep(0.05)

    own = registered(wait, timeout=0.3)
    own.handler("ok")(lambda task: None)
    start(handlers=own, concurrency=8)
    hanging = [queue.submit("act") for _ in range(8)]
    queue.wait_for_outcomes("FAILED", *hanging)
    others = [queue.submit("ok") for _ in range(20)]
    queue.wait_for("SUCCEEDED", *others)
    assert {queue.history(task)[0].error_type for task in hanging} == {TIMED_OUT}
    hold.end()


def test_a_late_result_is_refused(queue: Queue, run: Run) -> None:
    queue.alter(ladder=["1 hour"])
    runner = run("--handlers", "tests.runner.ordeals")
    task = queue.submit("thread-timed", do="sleep")
    queue.wait_for_outcomes("FAILED", task)
    runner.wait_for("attempt ended after its end was reported")
    assert queue.outcomes(task) == ["FAILED"]
    assert queue.status(task) == "PENDING"
    [line] = [e for e in runner.events if e["event"] == "handler runs on after its timeout"]
    assert (line["handler"], line["overdue"]) == ("thread-timed", 1)


def test_a_handler_sees_that_its_time_is_over(queue: Queue, start: Start) -> None:
    stopped = threading.Event()

    def heed(task: Task) -> None:
        task.cancellation.wait(60)
        stopped.set()
        task.heartbeat()

    start(handlers=registered(heed, timeout=0.2))
    queue.submit("act")
    assert stopped.wait(LONGEST_SECONDS)


def test_with_too_many_that_run_on_a_runner_ends_to_be_started_anew(
    database: str, queue: Queue, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overdue, "LEAST_LIMIT", 3)
    monkeypatch.setattr(overdue, "SLOTS_FACTOR", 1)

    def wait(task: Task) -> None:
        while hold.file.exists():
            time.sleep(0.05)

    runner = Runner(
        database, queues=["q"], handlers=registered(wait, timeout=0.1), concurrency=1, grace=0
    )
    for _ in range(3):
        queue.submit("act")
    with pytest.raises(TooManyOverdue, match="3 handlers run on"):
        runner.run()
    hold.end()


@pytest.mark.parametrize(("policy", "status"), [("run", "SUCCEEDED"), ("dead", "DEAD")])
def test_a_queue_says_what_becomes_of_a_task_for_another_version(
    queue: Queue, start: Start, policy: str, status: str
) -> None:
    queue.alter(on_version_mismatch=policy)
    start(handlers=registered(lambda task: None, version="2"))
    row = queue.db.execute(
        "select rdq.submit('q', 'act', '', handler_version => '1'),"
        " rdq.submit('q', 'act', '', handler_version => '2'), rdq.submit('q', 'act', '')"
    ).fetchone()
    assert row
    other, same, without = row
    queue.wait_for("SUCCEEDED", same, without)
    queue.wait_for(status, other)
    [attempt] = queue.history(other)
    if status == "DEAD":
        assert (attempt.error_type, attempt.error_class) == (
            "rdq_runner.VersionMismatch",
            "PERMANENT",
        )
        assert "version '1'" in attempt.message
        assert "'2'" in attempt.message


class Crowd:
    """A handler that counts how many of it run at once, and waits until so many have been."""

    def __init__(self, expected: int) -> None:
        self.now = self.most = 0
        self.expected = expected
        self.lock = threading.Lock()
        self.complete = threading.Event()

    def __call__(self, task: Task) -> None:
        """Take a little while."""
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == self.expected:
                self.complete.set()
        self.complete.wait(10)
        time.sleep(0.05)
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize("queues", [["q", "r"], None])
def test_no_more_of_a_handler_run_than_it_allows_and_none_waits_with_a_lease(
    queue: Queue, start: Start, queues: list[str] | None
) -> None:
    queue.db.execute("select rdq.create_queue('r')")
    few, many = Crowd(2), Crowd(3)
    own = Handlers()
    own.handler("few", concurrency=2)(few)
    own.handler("many")(many)
    limited = [queue.submit("few") for _ in range(20)]
    others = [
        row[0]
        for row in queue.db.execute(
            "select rdq.submit('r', 'many', '') from generate_series(1, 40)"
        )
    ]
    start(handlers=own, queues=queues, concurrency=8)
    queue.wait_for("SUCCEEDED", *limited, *others)
    assert few.most == 2
    assert many.most >= 3
    released = sum(queue.outcomes(task).count("RELEASED") for task in limited)
    # Those of the first claim, which did not know the queue, and no more.
    assert released <= 6
    assert {queue.task(task).attempt_count for task in limited} == {1}


@pytest.mark.parametrize("handler", ["async", "async-transactional"])
def test_a_blocked_event_loop_does_not_lose_its_leases(
    queue: Queue, start: Start, handler: str
) -> None:
    queue.alter(lease="2 seconds")
    queue.db.execute("create table public.trace (task_id uuid, attempt_no integer)")
    start(handlers=handlers)
    task, neighbour = queue.submit(handler, do="sleep"), queue.submit("thread", do="return")
    queue.wait_for("SUCCEEDED", task, neighbour)
    assert queue.outcomes(task) == ["SUCCEEDED"]


def test_async_handlers_begin_on_another_loop_when_one_is_blocked(
    queue: Queue, start: Start, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coroutines, "BEGIN_SECONDS", 0.3)

    async def act(task: Task) -> None:
        if task.text:
            hold.began.touch()
            while hold.file.exists():
                time.sleep(0.01)

    start(handlers=registered(act))
    blocking = queue.submit_text("act", "block")
    hold.wait_until_begun()
    others = [queue.submit_text("act", "") for _ in range(5)]
    queue.wait_for("SUCCEEDED", *others)
    assert queue.status(blocking) == "IN_FLIGHT"
    hold.end()
    queue.wait_for("SUCCEEDED", blocking)


def test_async_handlers_run_at_once_up_to_the_slots(queue: Queue, start: Start) -> None:
    now: set[object] = set()
    most = 0
    complete = asyncio.Event()

    async def act(task: Task) -> None:
        nonlocal most
        now.add(task.id)
        most = max(most, len(now))
        if most == 5:
            complete.set()
        await asyncio.wait_for(complete.wait(), 10)
        await asyncio.sleep(0.05)
        now.discard(task.id)

    tasks = [queue.submit("act") for _ in range(30)]
    start(handlers=registered(act), concurrency=5)
    queue.wait_for("SUCCEEDED", *tasks)
    assert most == 5


def test_an_async_handler_that_runs_at_shutdown_is_handed_back(queue: Queue, start: Start) -> None:
    began, ended = threading.Event(), threading.Event()

    async def act(task: Task) -> None:
        began.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    runner = start(handlers=registered(act))
    task = queue.submit("act")
    assert began.wait(LONGEST_SECONDS)
    runner.stop(grace=0)
    assert queue.outcomes(task) == ["RELEASED"]
    assert ended.wait(LONGEST_SECONDS)
