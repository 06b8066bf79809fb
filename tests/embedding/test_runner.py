"""A runner inside an application: its own threads beside the application's, ended by it."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from rdq_runner import Handlers, Runner, Task, submit, submit_many
from rdq_runner.sql import Functions
from tests.embedding.conftest import Tasks
from tests.waiting import wait_until


@pytest.fixture
def handlers() -> Handlers:
    registered = Handlers()

    @registered.handler("charge")
    def charge(task: Task) -> None:
        task.json()

    return registered


def succeeded(tasks: Tasks, count: int) -> Callable[[], bool]:
    """Return whether so many tasks have succeeded, when it is asked."""
    return lambda: [task.status for task in tasks.all()] == ["SUCCEEDED"] * count


@pytest.fixture
def others() -> set[threading.Thread]:
    """What other tests of this process have left running."""
    return set(threading.enumerate())


def rdq_threads(others: set[threading.Thread]) -> set[str]:
    """Return the names of the threads that are a runner's."""
    started = set(threading.enumerate()) - others
    return {thread.name for thread in started if thread.name.startswith("rdq-")}


def test_an_application_of_threads_starts_and_stops_a_runner(
    database: str,
    db: psycopg.Connection,
    tasks: Tasks,
    handlers: Handlers,
    others: set[threading.Thread],
) -> None:
    def produce(number: int) -> None:
        with psycopg.connect(database) as connection:
            submit(connection, "payments", "charge", {"order": number})

    with Runner(database, queues=["payments"], handlers=handlers) as runner:
        producers = [threading.Thread(target=produce, args=[number]) for number in range(8)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        wait_until(succeeded(tasks, 8))
    assert runner.error is None
    submit(db, "payments", "charge", {"order": 9})
    wait_until(lambda: not rdq_threads(others))
    assert [task.status for task in tasks.all()].count("PENDING") == 1


def test_a_runner_ends_with_the_block_that_fails(
    database: str, tasks: Tasks, handlers: Handlers, others: set[threading.Thread]
) -> None:
    with pytest.raises(ZeroDivisionError), Runner(database, queues=None, handlers=handlers):
        _ = 1 / 0
    wait_until(lambda: not rdq_threads(others))


def test_a_runner_that_could_not_go_on_says_so_at_the_end_of_the_block(
    database: str, tasks: Tasks, handlers: Handlers
) -> None:
    with (
        pytest.raises(psycopg.Error, match="no-such-queue"),
        Runner(database, queues=["no-such-queue"], handlers=handlers) as runner,
    ):
        wait_until(lambda: runner.error)


def test_an_asyncio_application_keeps_its_loop_free(
    database: str, tasks: Tasks, others: set[threading.Thread]
) -> None:
    beats = 0
    handlers = Handlers()

    @handlers.handler("charge")
    def charge(task: Task) -> None:
        before = beats
        wait_until(lambda: beats > before + 1)

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async def application() -> None:
        heart = asyncio.create_task(beat())
        runner = Runner(database, queues=["payments"], handlers=handlers)
        await asyncio.to_thread(runner.start)
        try:
            connection = await psycopg.AsyncConnection.connect(database, autocommit=True)
            async with connection:
                await connection.execute("select rdq.submit('payments', 'charge', '{}')")
            await asyncio.to_thread(wait_until, succeeded(tasks, 1))
        finally:
            await asyncio.to_thread(runner.stop)
        heart.cancel()
        with suppress(asyncio.CancelledError):
            await heart

    asyncio.run(application())
    wait_until(lambda: not rdq_threads(others))


def test_run_in_a_thread_of_an_asyncio_application_ends_with_stop(
    database: str, db: psycopg.Connection, tasks: Tasks, handlers: Handlers
) -> None:
    async def application() -> None:
        runner = Runner(database, queues=["payments"], handlers=handlers)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(runner.run))
            submit(db, "payments", "charge", {"order": 1})
            await asyncio.to_thread(wait_until, succeeded(tasks, 1))
            await asyncio.to_thread(runner.stop)

    asyncio.run(application())


class Together:
    """How many handlers of each queue run, and ran at once at most."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.total = 0
        self.go_on = threading.Event()

    def run(self, task: Task) -> None:
        """Count, and stay until told."""
        with self.lock:
            self.now[task.queue] = self.now.get(task.queue, 0) + 1
            self.most[task.queue] = max(self.most.get(task.queue, 0), self.now[task.queue])
            self.total = max(self.total, sum(self.now.values()))
        self.go_on.wait(30)
        with self.lock:
            self.now[task.queue] -= 1


def test_a_queue_runs_no_more_at_once_than_its_own_bound(
    database: str, db: psycopg.Connection, tasks: Tasks
) -> None:
    together = Together()
    handlers = Handlers()
    handlers.handler("hold")(together.run)
    db.execute("select rdq.create_queue('other')")
    for queue in ("payments", "mails", "other"):
        submit_many(db, queue, [{"handler": "hold", "payload": number} for number in range(9)])
    bounds = {"payments": 3, "mails": 1, "other": None}
    with Runner(database, queues=bounds, handlers=handlers, concurrency=6):
        wait_until(lambda: sum(together.now.values()) == 6)
        wait_until(lambda: "other" in together.now)
        # A claim of a queue that is full would end in a lease that nobody works on.
        leases = tasks.rows("select queue, count(*) from rdq.lease group by queue")
        assert {lease.queue: lease.count for lease in leases} == together.now
        together.go_on.set()
        wait_until(succeeded(tasks, 27))
    assert together.most["payments"] <= 3
    assert together.most["mails"] == 1
    assert together.total == 6


def test_a_full_queue_neither_holds_up_another_nor_keeps_the_database_busy(
    database: str, db: psycopg.Connection, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Together()
    handlers = Handlers()
    handlers.handler("hold")(together.run)
    handlers.handler("charge")(lambda task: None)
    claims: list[Any] = []
    claim = Functions.claim

    def counted(self: Functions, *arguments: Any) -> Any:
        claims.append(arguments)
        return claim(self, *arguments)

    monkeypatch.setattr(Functions, "claim", counted)
    submit_many(db, "payments", [{"handler": "hold", "payload": number} for number in range(3)])
    with Runner(database, queues={"payments": 1, "mails": None}, handlers=handlers):
        wait_until(lambda: together.now.get("payments") == 1)
        done = submit(db, "mails", "charge", "x")
        wait_until(lambda: tasks.one(done).status == "SUCCEEDED")
        claims.clear()
        together.go_on.wait(1)
        assert len(claims) <= 3
        together.go_on.set()
        wait_until(succeeded(tasks, 4))


def test_a_bound_below_one_is_refused(database: str, handlers: Handlers) -> None:
    with pytest.raises(ValueError, match="'payments' may run 0 tasks"):
        Runner(database, queues={"payments": 0}, handlers=handlers)


def test_what_a_producer_sends_is_what_a_handler_gets(
    database: str, db: psycopg.Connection, tasks: Tasks
) -> None:
    got: list[Task] = []
    handlers = Handlers()
    handlers.handler("charge")(got.append)
    headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    submit(db, "payments", "charge", {"order": "✓"}, headers=headers)
    with Runner(database, queues=["payments"], handlers=handlers):
        wait_until(succeeded(tasks, 1))
    [task] = got
    assert json.loads(task.payload) == task.json() == {"order": "✓"}
    assert (task.headers, task.content_type) == (headers, "application/json")
