"""What a contender can do. It takes part in each workload whose protocol it fulfils."""

import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, runtime_checkable

import psycopg

from tests.bench.stage import Stage
from tests.bench.work import FAILURES

Connection = psycopg.Connection[Any]

Work = Literal[
    "no-op", "no-op async", "storm", "storm async", "doom", "stamp", "mostly", "sleep", "callback"
]
"""What a worker does with each task, see `tests.bench.work`."""

ATTEMPTS: Final = FAILURES + 1
"""So often a task of the storm runs, and one that is doomed."""


@runtime_checkable
class Contender(Protocol):
    """Somebody who keeps tasks in PostgreSQL."""

    @property
    def name(self) -> str:
        """What the figures call it."""

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
        """Have submits wake workers, or not; until then they do what is the default."""

    def submit(self, connection: Connection, work: Work, payload: str) -> None:
        """Submit one task."""

    def submit_many(self, connection: Connection, work: Work, payloads: Sequence[str]) -> None:
        """Submit many tasks in one round trip."""

    def executions(self, connection: Connection) -> int:
        """Return how often a task has run to its end, as the contender's own tables tell."""


@runtime_checkable
class Drains(Submits, Protocol):
    """Lets tasks be claimed and completed through SQL."""

    def drain(self, connection: Connection, batch: int) -> int:
        """Claim up to `batch` tasks and complete them; return how many there were."""


@runtime_checkable
class Works(Submits, Protocol):
    """Has a worker, a process of its own."""

    drained: str
    """A question in SQL: is there no task any more that waits, is held, or waits for a retry?"""
    claims: str
    """A part of the statement that claims, as `pg_stat_statements` shows it."""

    def ready(self, workers: int) -> str:
        """Return a question in SQL: do so many workers wait for tasks?"""

    def worker(
        self, stage: Stage, work: Work, concurrency: int, **options: str
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Run a worker; it ends with the block. It may need to be waited for until `ready`."""


@dataclass(frozen=True)
class Held:
    """A task that was claimed.

    :param key: by which it is settled.
    :param attempt: from 1 on.
    """

    key: tuple[Any, ...]
    work: str
    payload: str
    attempt: int


@runtime_checkable
class Loops(Works, Protocol):
    """Lets a loop in one thread be its worker, over its statements alone."""

    channel: str
    """Where submits notify."""

    def hold(self, connection: Connection, batch: int) -> list[Held]:
        """Claim up to `batch` tasks."""

    def settle(
        self, connection: Connection, done: Sequence[Held], failed: Sequence[tuple[Held, str]]
    ) -> None:
        """Store how tasks ended, in one transaction; of those that failed with their stacks."""


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


Pile = Literal["dead", "scheduled", "succeeded"]
"""What a database may have much of, of which no claim needs to know."""


@runtime_checkable
class Grows(Drains, Works, Protocol):
    """Lets its statements be explained while its tables grow."""

    def pile_up(self, connection: Connection, piles: Sequence[Pile], count: int) -> None:
        """Have so many of each of these, in thousands, where there is no task yet."""

    def create_queues(self, connection: Connection, count: int, tasks: int) -> Sequence[str]:
        """Create queues with so many tasks each, ready to run; return their names."""

    def drain_queue(self, connection: Connection, queue: str, batch: int) -> int:
        """Claim up to `batch` tasks of a queue and complete them; return how many there were."""

    def set_policy(self, connection: Connection, **settings: object) -> None:
        """Change the settings of the queue that all workloads use."""

    def claim_query(self, batch: int, queues: Sequence[str] = ()) -> str:
        """Return a claim as SQL; without names, from the queue that all workloads use."""

    def report_query(self, failed: bool) -> str:
        """Return the report of all that is held as SQL, with successes or with failures."""

    def stats_queries(self) -> Sequence[str]:
        """Return what a scrape of metrics asks, as SQL."""

    def recount_query(self) -> str:
        """Return how what scrapes show is counted, as SQL; it may do nothing where it just did."""

    def forget_counts(self, connection: Connection) -> None:
        """Have it count at the next call."""

    def tables(self) -> Sequence[str]:
        """Return the tables that work goes through, with their schema."""
