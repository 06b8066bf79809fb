"""Whatever is killed: no task is lost, none is run by two at once, and the work goes on."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import choice
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.runner.conftest import Queue
from tests.runner.journals import KINDS, Execution, read
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until
from tools.postgres import Server

TASKS_A_CRASH = 50
OPTIONS = ("--handlers", "tests.runner.journals", "--poll-interval", "0.5")


class Site:
    """A server, two runners, a producer: each as it is after the last crash."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.journal = folder / "journal"
        self.tasks: dict[UUID, bool] = {}
        self._folder = folder
        self.runners = [self._run(), self._run()]

    def ask(self, *statements: tuple[str, list[Any]]) -> list[Any]:
        """Execute statements that may be repeated, as soon as the server does it; return rows."""

        answers: list[Any] = []

        def are_answered() -> bool:
            answers.clear()
            try:
                with psycopg.connect(self.server.dsn(), autocommit=True) as db:
                    for statement in statements:
                        answers.extend(db.execute(*statement).fetchall())
            except psycopg.OperationalError:
                return False
            return True

        wait_until(are_answered)
        return answers

    def submit(self, count: int) -> None:
        """Submit tasks of all kinds, some of which fail."""
        tasks = {uuid4(): number % 10 == 0 for number in range(count)}
        self.tasks |= tasks
        self.ask(
            *(
                (
                    "select rdq.submit('q', %s, %s, task_id => %s)",
                    [choice(KINDS), Jsonb({"journal": str(self.journal), "fails": fails}), task_id],
                )
                for task_id, fails in tasks.items()
            )
        )

    def held(self) -> int:
        """Return how many tasks are held."""
        [(count,)] = self.ask(("select count(*) from rdq.lease", []))
        return int(count)

    def backends(self, condition: str) -> list[int]:
        """Return the server's processes that serve the runners."""
        rows = self.ask(
            (
                "select pid from pg_stat_activity where application_name ~ '^rdq-runner'"
                f" and {condition}",
                [],
            )
        )
        return [pid for (pid,) in rows]

    def children(self) -> list[int]:
        """Return the processes in which runners run handlers."""
        return [
            int(pid)
            for runner in self.runners
            for children in Path(f"/proc/{runner.process.pid}/task").glob("*/children")
            for pid in children.read_text().split()
        ]

    def replace_runner(self) -> None:
        """Kill one, and start another, as whatever supervises them does."""
        self.runners.pop(0).kill()
        self.runners.append(self._run())

    def stop(self) -> None:
        """End the runners."""
        for runner in self.runners:
            runner.kill()

    def _run(self) -> RunnerProcess:
        return RunnerProcess(self.server.dsn(), self._folder, *OPTIONS)


def kill_a_runner(site: Site) -> None:
    site.replace_runner()


def kill_a_child(site: Site) -> None:
    os.kill(choice(wait_until(site.children)), signal.SIGKILL)


def end_the_listeners(site: Site) -> None:
    for pid in site.backends("query = 'listen rdq_due'"):
        site.ask(("select pg_terminate_backend(%s)", [pid]))


def kill_a_backend(site: Site) -> None:
    pids = wait_until(lambda: site.backends("true"))
    # The server ends all others then, and recovers.
    os.kill(choice(pids), signal.SIGKILL)


def kill_the_server(site: Site) -> None:
    site.server.kill()
    site.server.start()


CRASHES: list[Callable[[Site], None]] = [
    kill_a_runner,
    kill_a_child,
    end_the_listeners,
    kill_a_backend,
    kill_the_server,
]


@pytest.fixture
def site(own_server: Server, tmp_path: Path) -> Iterator[Site]:
    with psycopg.connect(own_server.dsn(), autocommit=True) as db:
        queue = Queue(db)
        queue.alter(lease="2 seconds", max_attempts=100, ambiguous_attempts=100, vanish_limit=100)
        db.execute("create table public.trace (task_id uuid)")
    site = Site(own_server, tmp_path)
    with ExitStack() as stack:
        stack.callback(site.stop)
        yield site


@pytest.mark.slow
def test_tasks_in_flow_survive_every_crash(site: Site) -> None:
    for crash in CRASHES * 2:
        site.submit(TASKS_A_CRASH)
        wait_until(lambda: site.held() > 4)
        crash(site)
    site.submit(TASKS_A_CRASH)
    with psycopg.connect(site.server.dsn(), autocommit=True) as db:
        wait_until(lambda: count(db, "rdq.due") + count(db, "rdq.lease") == 0, 40)
        check(site, Queue(db))
    assert all(runner.process.poll() is None for runner in site.runners)


def count(db: psycopg.Connection[Any], table: str) -> int:
    """Return how many rows a table has."""
    [(rows,)] = db.execute(f"select count(*) from {table}").fetchall()
    return int(rows)


def check(site: Site, queue: Queue) -> None:
    """Compare what the handlers wrote down with what the database knows."""
    assert count(queue.db, "rdq.task") == len(site.tasks) == TASKS_A_CRASH * (2 * len(CRASHES) + 1)
    executions = read(site.journal)
    attempts = []
    for task_id, fails in site.tasks.items():
        history = queue.history(task_id)
        attempts += history
        *earlier, last = queue.outcomes(task_id)
        assert queue.status(task_id) == ("DEAD" if fails else "SUCCEEDED")
        assert last == ("FAILED" if fails else "SUCCEEDED")
        # RELEASED: a child was killed before it had begun.
        assert set(earlier) <= {"FAILED", "LEASE_EXPIRED", "RELEASED"}
        for one, next_one in pairwise(history):
            assert one.finished_at <= next_one.started_at
        check_that_none_was_run_by_two(executions[task_id], history)
    found = {(attempt.outcome, attempt.error_type) for attempt in attempts}
    assert ("LEASE_EXPIRED", None) in found
    # What a transaction did was done once, however often it was tried.
    traces = queue.db.execute(
        """
        select coalesce(t.count, 0)
        from rdq.tasks k
        left join (select task_id, count(*) from trace group by task_id) t using (task_id)
        where k.handler = 'transactional' and k.status = 'SUCCEEDED'
        """
    ).fetchall()
    assert set(traces) == {(1,)}


def check_that_none_was_run_by_two(executions: list[Execution], history: list[Any]) -> None:
    """Only what had vanished, or was killed, may have no end before the next one began."""
    for one, next_one in pairwise(executions):
        assert one.attempt_no < next_one.attempt_no
        if one.ended is None or one.ended > next_one.began:
            attempt = history[one.attempt_no - 1]
            assert "LEASE_EXPIRED" in attempt.outcome or "ChildDied" in attempt.error_type
