"""Claims what is due, never more than there are free slots: nothing waits while its lease runs."""

import logging
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from rdq_runner.executor import Executor, Finish, Routes
from rdq_runner.leases import Lease, Leases
from rdq_runner.limits import Limits
from rdq_runner.logs import Rarely, say, say_each
from rdq_runner.loop import Loop
from rdq_runner.metrics import Metrics
from rdq_runner.outcomes import Release
from rdq_runner.plan import Plan
from rdq_runner.sessions import Database, Session, is_outage
from rdq_runner.silence import UNTIL_CANCEL
from rdq_runner.sql import Functions
from rdq_runner.turns import Turns
from rdq_runner.upkeep import Upkeep

KNOWN_SCHEMA: Final = "0.2"

TICK_SECONDS: Final = 5.0
# While a redrive sends at its pace.
REDRIVE_TICK_SECONDS: Final = 1.0
TICK_TASKS: Final = 1000
# Where something is due that a claim does not give, as when another session is just taking it.
LEAST_PAUSE_SECONDS: Final = 0.1
# Between a claim and the question when something is due next: handlers that begin come first, since
# else they wait twice as long for the interpreter; and the next claim may make it needless.
GIVE_WAY_SECONDS: Final = 0.002
# Who had work looks again so soon, then after twice that time, and so on up to the poll interval.
LOOK_AGAIN_SECONDS: Final = 0.1
# How often to ask about handlers that are unknown.
NEWS_SECONDS: Final = 1.0
UNROUTABLE_DELAY_SECONDS: Final = 60.0
# How often to look, after an outage, whether what is known here is delivered.
DELIVERY_SECONDS: Final = 0.02


class SchemaError(Exception):
    """The database has no schema of rdq that this package knows; the message says what to do."""


class Claims(Loop):
    """Claims, starts handlers, and keeps what is periodic going.

    An error at the very first claim that no waiting mends, such as a queue that does not exist,
    ends the runner: somebody made a mistake in starting it. After that no error does.

    :param refresh: is called before the first claim and with every tick: for what the database
        says about how to run tasks.
    """

    def __init__(
        self,
        database: Database,
        plan: Plan,
        routes: Routes,
        limits: Limits,
        leases: Leases,
        metrics: Metrics,
        *,
        finish: Finish,
        claimed: Callable[[Iterable[Lease]], None],
        refresh: Callable[[Functions], None],
    ) -> None:
        super().__init__(Session(database, "claims", self._opened))
        self._recovery = database.recovery
        self._clock_ahead = 0.0  # of the database, of time.monotonic
        self._plan = plan
        self._routes = routes
        self._limits = limits
        self._leases = leases
        self._metrics = metrics
        self._finish = finish
        self._claimed = claimed
        self._refresh = refresh
        self._turns = Turns(plan.concurrency, lambda: plan.concurrency - leases.running_count)
        self._worked = False
        self._held_up = False  # by a backlog of outcomes that are not reported
        self._look_again = plan.poll_seconds
        self._told = False  # that there was work; another may have been faster
        self._found = False  # something, with the last claim
        self._exhausted: list[Sequence[str] | None] = []  # where it took all that was due
        self._tick_at = 0.0
        self._news_at = 0.0
        self._unroutable = Rarely()
        self._upkeep = Upkeep(metrics)

    def due_in(self, seconds: float = 0.0) -> None:
        """Claim then: something will be due."""
        if seconds > 0:
            self._turns.due_in(max(seconds, LEAST_PAUSE_SECONDS))
        else:
            self._told = True
            self._turns.announced()
        self.wake()

    def freed(self) -> None:
        """Claim for a slot that is free, if there may be something to claim."""
        if self._turns.freed():
            self.wake()

    def reported(self) -> None:
        """Claim on, where the backlog of outcomes was full."""
        if self._held_up:
            self.wake()

    def _opened(self, rdq: Functions) -> None:
        check_schema(rdq)
        self._clock_ahead = rdq.clock() - time.monotonic()

    def step(self, rdq: Functions) -> float:
        """Claim for the free slots, if it is time; return when it is next."""
        if self._has_to_deliver():
            return DELIVERY_SECONDS
        if not self._worked:
            self._refresh(rdq)
        if self._pause() <= 0:
            self._claim(rdq)
        elif self._exhausted:
            self._ask(rdq)
        now = time.monotonic()
        if now >= self._tick_at:
            # Before the call: a tick that fails does not come again at once.
            self._tick_at = now + TICK_SECONDS * random.uniform(0.8, 1.2)
            self._tick_at -= self._tick(rdq)
            self._refresh(rdq)
        most = GIVE_WAY_SECONDS if self._exhausted else math.inf
        return min(self._pause(), max(self._tick_at - now, 0.0), most)

    def _has_to_deliver(self) -> bool:
        """Whether the database should first be told of what ended without it, and of what runs."""
        until = self._recovery.deliver_until
        if until is None:
            return False
        now = time.monotonic()
        return any((lease.ended_at or 0.0) < until for lease in self._leases.finished()) or any(
            lease.beat_at <= now for lease in self._leases.running()
        )

    def _tick(self, rdq: Functions) -> float:
        """Do what is periodic; return by how many seconds the next time comes sooner."""
        tick = rdq.tick(TICK_TASKS, self._recovery.spare(self._clock_ahead))
        self._upkeep.ticked(tick)
        if max(tick.reclaimed, tick.given_up, tick.redriven, tick.purged) >= TICK_TASKS:
            return math.inf
        return TICK_SECONDS - REDRIVE_TICK_SECONDS if tick.redriven else 0.0

    def failed(self, error: psycopg.Error) -> float:
        """Wait, unless the runner cannot work as it was started."""
        if not self._worked and _is_permanent(error):
            raise error
        self._turns.due_in(0.0)
        return super().failed(error)

    def _pause(self) -> float:
        self._held_up = self._is_backlog_full()
        # Who has reported some just now did not know that somebody waits.
        if self._held_up and self._is_backlog_full():
            return math.inf
        return self._turns.pause()

    def _is_backlog_full(self) -> bool:
        return self._leases.finished_count >= self._plan.max_unreported

    def _claim(self, rdq: Functions) -> None:
        plan = self._plan
        began_at = time.monotonic()
        # Before the claim: what is announced while it is under way is for the next one.
        told, self._told = self._told, False
        self._turns.begin()
        free = plan.concurrency - self._leases.running_count
        claimed, hungry = 0, False
        exhausted: list[Sequence[str] | None] = []
        for queues, room in plan.rooms(self._leases.running()):
            for part in self._limits.apart(queues):
                most = min(room, free - claimed, self._limits.room(part, self._leases.running))
                count = self._claim_from(rdq, part, int(most)) if most > 0 else 0
                claimed += count
                if count < most:
                    exhausted.append(part)
                else:
                    hungry = True
        seconds = time.monotonic() - began_at
        self._turns.end(hungry=hungry, seconds=seconds, told=told, found=claimed > 0)
        self._found = claimed > 0
        # Where no slot is free nothing waits for a time: one that becomes free wakes us.
        self._exhausted = exhausted if claimed < free else []
        # Where there was work there may be more, and not all of it is announced: not where runners
        # were busy, or a queue's settings say so, or behind a pooler. What a transaction submits
        # that ends so much later waits no longer than it took.
        again = LOOK_AGAIN_SECONDS if claimed or told else 2 * self._look_again
        self._look_again = min(again, plan.poll_seconds)
        self._turns.due_in(self._look_again)

    def _ask(self, rdq: Functions) -> None:
        """Plan a claim for what is due next where the last one took all."""
        due_in = min(map(rdq.seconds_until_due, self._exhausted))
        self._exhausted = []
        least = LEAST_PAUSE_SECONDS if due_in > 0 or not self._found else 0.0
        self._turns.due_in(max(due_in, least))

    def _claim_from(self, rdq: Functions, queues: Sequence[str] | None, most: int) -> int:
        """Claim and begin what is due in queues; return how many tasks that are."""
        plan = self._plan
        asked_at = time.monotonic()
        not_after = self._clock_ahead + asked_at + self.session.patience * UNTIL_CANCEL
        claims = rdq.claim(
            queues,
            plan.runner,
            most,
            plan.lease,
            plan.code_version,
            not_after,
            self._recovery.spare(self._clock_ahead),
        )
        self._worked = True
        if claims:
            leases = self._leases.take(claims, asked_at)
            self._look_for_news(rdq, leases)
            self._begin(leases)
            self._claimed(leases)
            for lease in leases:
                self._metrics.claimed(lease)
        return len(claims)

    def _look_for_news(self, rdq: Functions, leases: list[Lease]) -> None:
        """Refresh where a handler is unknown: it may be an endpoint that is just registered."""
        now = time.monotonic()
        if now < self._news_at or all(
            self._routes.find(lease.claim.queue, lease.claim.handler) for lease in leases
        ):
            return
        self._news_at = now + NEWS_SECONDS
        # The tasks are ours already, so an outage must not keep them from what is known.
        with suppress(psycopg.Error):
            self._refresh(rdq)

    def _begin(self, leases: Iterable[Lease]) -> None:
        begin: dict[Executor, list[Lease]] = {}
        for lease in leases:
            if executor := self._executor(lease):
                begin.setdefault(executor, []).append(lease)
        for executor, own in begin.items():
            say_each(logging.INFO, "attempt begins", (lease.labels for lease in own))
            executor.run(own)

    def _executor(self, lease: Lease) -> Executor | None:
        """Return who runs a task; None for one that is handed back."""
        name = lease.claim.handler
        executor = self._routes.find(lease.claim.queue, name)
        if self.stopping.is_set():
            self._finish(lease, Release("shutdown"))
        elif executor is None:
            self._say_unroutable(lease)
            delay = UNROUTABLE_DELAY_SECONDS * random.uniform(0.8, 1.2)
            self._finish(lease, Release(f"no handler {name!r} in this runner", delay))
        elif not self._limits.admit(lease, self._leases.running):
            # It happens where the handler is met for the first time in a queue.
            self._finish(lease, Release(f"no room for more of handler {name!r} in this runner"))
        else:
            return executor
        return None

    def _say_unroutable(self, lease: Lease) -> None:
        if self._unroutable.allows(lease.claim.handler):
            say(logging.WARNING, "no such handler in this runner", **lease.labels)


def check_schema(rdq: Functions) -> None:
    """Refuse a schema of another major or minor version.

    :raises SchemaError: it is another, or there is none.
    """
    try:
        version = rdq.version()
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction) as error:
        raise SchemaError("there is no rdq in this database: run rdq-runner migrate") from error
    if not version.startswith(f"{KNOWN_SCHEMA}."):
        raise SchemaError(
            f"the schema rdq has version {version}, this runner knows {KNOWN_SCHEMA}:"
            " run rdq-runner migrate, or install the package of that version"
        )


def _is_permanent(error: psycopg.Error) -> bool:
    # Rights and functions are missing until somebody mends them; the time to say so is the start.
    return not is_outage(error) or isinstance(error, psycopg.ProgrammingError)
