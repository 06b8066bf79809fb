"""Claims what is due, never more than there are free slots: nothing waits while its lease runs."""

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import psycopg

from rdq_runner.handlers import Handlers
from rdq_runner.leases import Lease, Leases
from rdq_runner.logs import say
from rdq_runner.loop import Loop
from rdq_runner.outcomes import Outcome, Release
from rdq_runner.sessions import Database, Session, is_outage
from rdq_runner.slots import Slots
from rdq_runner.sql import Functions

KNOWN_SCHEMA: Final = "0.1"

TICK_SECONDS: Final = 5.0
# Where something is due that a claim does not give, as when another session is just taking it.
LEAST_PAUSE_SECONDS: Final = 0.1
# While results pile up, how often to look whether they still do.
BACKLOG_PAUSE_SECONDS: Final = 0.2
UNROUTABLE_DELAY_SECONDS: Final = 60.0
UNROUTABLE_SAY_SECONDS: Final = 60.0


class SchemaError(Exception):
    """The database has no schema of rdq that this package knows; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to claim, and how much of it."""

    queues: Sequence[str] | None
    runner: str
    code_version: str | None
    concurrency: int
    lease: timedelta | None
    poll_seconds: float
    max_unreported: int


class Claims(Loop):
    """Claims, starts handlers, and keeps what is periodic going.

    An error at the very first claim that no waiting mends, such as a queue that does not exist,
    ends the runner: somebody made a mistake in starting it. After that no error does.

    :param finish: takes the outcome of an attempt.
    """

    def __init__(
        self,
        database: Database,
        plan: Plan,
        handlers: Handlers,
        leases: Leases,
        slots: Slots,
        *,
        finish: Callable[[Lease, Outcome], None],
        claimed: Callable[[], None],
    ) -> None:
        super().__init__(Session(database, "claims", check_schema))
        self._plan = plan
        self._handlers = handlers
        self._leases = leases
        self._slots = slots
        self._finish = finish
        self._claimed = claimed
        self._worked = False
        self._tick_at = 0.0
        self._said: dict[str, float] = {}

    def step(self, rdq: Functions) -> float:
        """Claim for the free slots; return when there may be more to claim."""
        pause = self._claim(rdq)
        now = time.monotonic()
        if now >= self._tick_at:
            # Before the call: a tick that fails does not come again at once.
            self._tick_at = now + TICK_SECONDS * random.uniform(0.8, 1.2)
            rdq.tick()
        return min(pause, self._tick_at - now)

    def failed(self, error: psycopg.Error) -> float:
        """Wait, unless the runner cannot work as it was started."""
        if not self._worked and _is_permanent(error):
            raise error
        return super().failed(error)

    def _claim(self, rdq: Functions) -> float:
        plan = self._plan
        if len(self._leases.finished()) >= plan.max_unreported:
            return BACKLOG_PAUSE_SECONDS
        free = plan.concurrency - len(self._leases.running())
        if free <= 0:
            return plan.poll_seconds  # a slot that becomes free wakes us
        asked_at = time.monotonic()
        claims = rdq.claim(plan.queues, plan.runner, free, plan.lease, plan.code_version)
        self._worked = True
        for claim in claims:
            self._begin(self._leases.take(claim, asked_at))
        if claims:
            self._claimed()
            return 0
        due_in = rdq.seconds_until_due(plan.queues)
        return min(max(due_in, LEAST_PAUSE_SECONDS), plan.poll_seconds)

    def _begin(self, lease: Lease) -> None:
        name = lease.claim.handler
        handler = self._handlers.get(name)
        if self.stopping.is_set():
            self._finish(lease, Release("shutdown"))
        elif handler is None:
            self._say_unroutable(lease)
            delay = UNROUTABLE_DELAY_SECONDS * random.uniform(0.8, 1.2)
            self._finish(lease, Release(f"no handler {name!r} in this runner", delay))
        else:
            say(logging.INFO, "attempt begins", **lease.labels)
            self._slots.run(handler, lease)

    def _say_unroutable(self, lease: Lease) -> None:
        now = time.monotonic()
        if now >= self._said.get(lease.claim.handler, 0.0):
            self._said[lease.claim.handler] = now + UNROUTABLE_SAY_SECONDS
            say(logging.WARNING, "no such handler in this runner", **lease.labels)


def check_schema(rdq: Functions) -> None:
    """Refuse a schema of another major or minor version.

    :raises SchemaError: it is another, or there is none.
    """
    try:
        version = rdq.version()
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction) as error:
        raise SchemaError("there is no rdq in this database: run rdq-runner migrate") from error
    if version.rpartition(".")[0] != KNOWN_SCHEMA:
        raise SchemaError(
            f"the schema rdq has version {version}, this runner knows {KNOWN_SCHEMA}:"
            " run rdq-runner migrate, or install the package of that version"
        )


def _is_permanent(error: psycopg.Error) -> bool:
    # Rights and functions are missing until somebody mends them; the time to say so is the start.
    return not is_outage(error) or isinstance(error, psycopg.ProgrammingError)
