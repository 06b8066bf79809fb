"""What a contender can do. It takes part in each workload whose protocol it fulfils."""

import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, runtime_checkable

import psycopg

from tests.bench.stage import Stage

Connection = psycopg.Connection[Any]

Work = Literal["no-op", "no-op async", "storm", "stamp", "mostly", "callback"]
"""What a worker does with each task, see `tests.bench.work`."""


@runtime_checkable
class Contender(Protocol):
    """Somebody who keeps tasks in PostgreSQL."""

    name: str

    def version(self) -> str:
        """Return what is measured, for the record."""

    def missing(self) -> str | None:
        """Return why it cannot take part here, None if it can."""

    def prepare(self, dsn: str) -> None:
        """Install it in an empty database, and create the queue that all workloads use."""


@runtime_checkable
class Submits(Contender, Protocol):
    """Takes tasks."""

    def announce(self, connection: Connection, on: bool) -> None:
        """Have submits wake workers, or not."""

    def submit(self, connection: Connection, work: Work, payload: str) -> None:
        """Submit one task."""

    def submit_many(self, connection: Connection, work: Work, payloads: Sequence[str]) -> None:
        """Submit many tasks in one round trip."""


@runtime_checkable
class Drains(Submits, Protocol):
    """Lets tasks be claimed and completed through SQL."""

    def drain(self, connection: Connection, batch: int) -> int:
        """Claim up to `batch` tasks and complete them; return how many there were."""


@runtime_checkable
class Works(Submits, Protocol):
    """Has a worker, a process of its own."""

    ready: str
    """A question in SQL: does a worker wait for tasks?"""
    drained: str
    """A question in SQL: is there no task any more that waits, is held, or waits for a retry?"""

    def worker(
        self, stage: Stage, work: Work, concurrency: int, **options: str
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Run a worker; it ends with the block. It may need to be waited for until `ready`."""


@runtime_checkable
class Redrives(Submits, Protocol):
    """Has dead letters."""

    def bury(self, connection: Connection, count: int) -> None:
        """Have so many dead letters."""

    def redrive_all(self, connection: Connection) -> int:
        """Put all dead letters back to work; return how many there were."""


@runtime_checkable
class Calls(Works, Protocol):
    """Delivers tasks by HTTP."""

    def set_endpoint(self, connection: Connection, url: str) -> None:
        """Have tasks of the work "callback" delivered there."""
