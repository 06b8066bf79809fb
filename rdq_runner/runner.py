"""A runner: its threads, their start and their end."""

import logging
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from queue import Empty, SimpleQueue
from typing import Final, Self

from prometheus_client import CollectorRegistry

from rdq_runner import signals, storable
from rdq_runner.callbacks import Callbacks
from rdq_runner.claims import Claims
from rdq_runner.destinations import Destinations
from rdq_runner.execution import Execution
from rdq_runner.executor import Executor, Routes
from rdq_runner.handlers import Handlers
from rdq_runner.health import Health
from rdq_runner.heartbeat import Heartbeat
from rdq_runner.leases import Lease, Leases
from rdq_runner.limits import Limits
from rdq_runner.listener import Listener
from rdq_runner.logs import Rarely, say
from rdq_runner.loop import Loop
from rdq_runner.monitor import Monitor
from rdq_runner.outcomes import Outcome, Release
from rdq_runner.plan import Plan
from rdq_runner.policies import Policies
from rdq_runner.registry import Entry
from rdq_runner.reports import Reports
from rdq_runner.sessions import Database, Session
from rdq_runner.sql import Functions

# After the grace period: for the reports that are left, also while the database is away.
FLUSH_SECONDS: Final = 10.0
# For threads that may be in a call to a database that does not answer.
JOIN_SECONDS: Final = 10.0
# How long a signal may go unnoticed.
SIGNAL_SECONDS: Final = 0.5
_NAME_BYTES: Final = 200


class _Event(Enum):
    STOP = "somebody wants the runner to stop"
    STOPPED = "it has"


class Runner:
    """Runs tasks of some queues with some handlers; stateless, so that one that dies loses nothing.

    ``run()`` is for a process of its own. In an application: ``start()``, later ``stop()`` from any
    thread; or ``with Runner(…):`` around what the application does.

    :param dsn: connection string or URI; what it leaves out comes from libpq's environment.
    :param queues: their names; or by name how many tasks of one may run at once, None for no bound
        of its own. None means all that the role may work on.
    :param concurrency: how many handlers run at once, of all queues.
    :param name: of this runner in the history; host and process id by default.
    :param code_version: kept with each attempt, so that a bad deploy shows.
    :param lease: seconds; None means the queue's own.
    :param poll_interval: seconds after which to look for work that nothing announced.
    :param grace: seconds that handlers have to end when the runner stops.
    :param max_unreported: with so many outcomes that the database does not have yet, claim no more.
    :param metrics_port: serves /metrics, /healthz and /readyz; None: nowhere, 0: a free port.
    :param metrics_address: the address for that.
    :param registry: of Prometheus, to show the metrics in; None means one of the runner's own.
    :param allow_destinations: where callbacks may connect to besides the public internet: networks,
        addresses, names of hosts (see `Destinations`).
    :raises HandlersError: a handler cannot be run as its options say.
    :raises ValueError: nothing could ever run, or a destination is not one.
    :raises psycopg.ProgrammingError: the connection string is not one.
    """

    def __init__(
        self,
        dsn: str = "",
        *,
        queues: Sequence[str] | Mapping[str, int | None] | None,
        handlers: Handlers,
        concurrency: int = 8,
        name: str | None = None,
        code_version: str | None = None,
        lease: float | None = None,
        poll_interval: float = 5.0,
        grace: float = 30.0,
        max_unreported: int = 1000,
        metrics_port: int | None = None,
        metrics_address: str = "127.0.0.1",
        registry: CollectorRegistry | None = None,
        allow_destinations: Sequence[str] = (),
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}: give at least 1")
        self.name = storable.text(name or f"{socket.gethostname()}:{os.getpid()}", _NAME_BYTES)
        self.error: BaseException | None = None
        self.interrupted = 0
        self._grace = grace
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._hurried = False
        self._stop_once = threading.Lock()
        self._stopped = threading.Event()
        self._rarely = Rarely()
        self._database = database = Database(dsn, f"rdq-runner {self.name}")
        held_for = None if lease is None else timedelta(seconds=lease)
        given = queues.items() if isinstance(queues, Mapping) else ()
        bounds = {queue: bound for queue, bound in given if bound is not None}
        queues = None if queues is None else list(queues)
        self._leases = Leases()
        self._policies = Policies()
        self._execution = execution = Execution(
            handlers,
            self._policies,
            database,
            concurrency,
            finish=self._finish,
            give_up=self._give_up,
        )
        self._executors: list[Executor] = [execution]
        self._queues = queues
        self._callbacks = Callbacks(self._finish, Destinations.parse(allow_destinations))
        self._executors.append(self._callbacks)
        self._routes = routes = Routes()
        routes.functions = dict.fromkeys(handlers, execution)
        code_version = code_version and storable.text(code_version, _NAME_BYTES)
        entry = Entry(
            runner=self.name, code_version=code_version, queues=queues, concurrency=concurrency
        )
        self._monitor = Monitor(
            database,
            self._leases,
            entry,
            lambda queue, handler: routes.find(queue, handler) is not None,
            lambda: execution.overdue,
            registry,
        )
        metrics = self._monitor.metrics
        self._reports = Reports(
            Session(database, "reports"),
            self._leases,
            metrics,
            rescheduled=lambda seconds: self._claims.due_in(seconds),
            reported=lambda: self._claims.reported(),
            failed=lambda: self._heartbeat.wake(),
        )
        self._heartbeat = Heartbeat(
            Session(database, "heartbeat"), self._leases, held_for, metrics.lost
        )
        self._claims = Claims(
            database,
            Plan(
                queues=queues,
                bounds=bounds,
                runner=self.name,
                code_version=code_version,
                concurrency=concurrency,
                lease=held_for,
                poll_seconds=poll_interval,
                max_unreported=max_unreported,
            ),
            routes,
            Limits(handlers.limits(), self._policies.queues),
            self._leases,
            metrics,
            finish=self._finish,
            claimed=self._heartbeat.claimed,
            refresh=self._refresh,
        )
        self._listener = Listener(database, queues, self._claims.due_in, metrics.announced)
        database.returned = self._deliver
        self._threads: dict[Loop, threading.Thread] = {}
        self._health = Health(
            threads=self._threads,
            claims=self._claims,
            leases=self._leases,
            database=database,
            max_unreported=max_unreported,
        )
        self._metrics_at = (metrics_address, metrics_port)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop.

        :raises SchemaError, psycopg.Error: as `run`, unless the block itself raised.
        """
        self.stop()
        if self.error and kind is None:
            raise self.error

    def start(self) -> None:
        """Start the threads, and return. If they cannot go on they say so, and `error` is set.

        :raises RuntimeError: the runner was started before, or stopped.
        :raises OSError: the metrics cannot be served there.
        """
        if self._threads or self._stopped.is_set():
            raise RuntimeError("a runner starts once")
        self._monitor.start(self._health, *self._metrics_at)
        say(logging.INFO, "runner starts", runner=self.name)
        for executor in self._executors:
            executor.start()
        for loop in (self._heartbeat, self._reports, self._claims, self._listener):
            name = f"rdq-{type(loop).__name__.lower()}"
            thread = threading.Thread(target=self._guard, args=[loop], name=name, daemon=True)
            self._threads[loop] = thread
            thread.start()

    def stop(self, grace: float | None = None) -> None:
        """Claim no more, let handlers end, report what they did, hand the rest back; then return.

        :param grace: seconds that handlers have; None means those given to the runner.
        """
        with self._stop_once:
            if self._stopped.is_set():
                return
            self._end(self._claims)
            for lease in self._leases.running():
                lease.cancel()
            self._leases.wait_for(
                lambda: self._hurried or not self._leases.running(),
                self._grace if grace is None else grace,
            )
            self.interrupted = len(self._leases.running()) + self._execution.overdue
            for executor in self._executors:
                executor.stop()
            for lease in self._leases.running():
                self._finish(lease, Release("shutdown"))
            if not self._leases.wait_for(lambda: not self._leases.finished(), FLUSH_SECONDS):
                unreported = len(self._leases.finished())
                say(logging.ERROR, "outcomes not reported", count=unreported)
            self._end(self._listener, self._reports, self._heartbeat)
            self._monitor.stop()
            self._database.close()
            say(logging.INFO, "runner stopped", runner=self.name, interrupted=self.interrupted)
            self._stopped.set()
        self._events.put(_Event.STOPPED)

    def hurry(self) -> None:
        """Have a `stop` that is under way wait no longer for handlers."""
        self._hurried = True
        self._leases.look_again()

    def run(self) -> None:
        """Start, and return when stopped: by `stop`, or in the main thread by a signal.

        SIGTERM and SIGINT stop it, and SIGHUP, unless that is ignored.

        A second signal ends the grace period.

        :raises SchemaError: the database has no schema that this package knows.
        :raises TooManyOverdue: too many handlers run on after their timeout; start a new process.
        :raises psycopg.Error: the first claim failed for good, as for a queue that does not exist.
        """
        with signals.taken(signals.to_stop(), lambda: self._events.put(_Event.STOP)):
            self.start()
            stopper: threading.Thread | None = None
            while self._next_event() is not _Event.STOPPED:
                if stopper:
                    self.hurry()
                else:
                    stopper = threading.Thread(target=self.stop, name="rdq-stop", daemon=True)
                    stopper.start()
        if self.error:
            raise self.error

    def _next_event(self) -> _Event:
        # Not one long wait: a signal that comes right before it does not end it.
        while True:
            with suppress(Empty):
                return self._events.get(timeout=SIGNAL_SECONDS)

    def _refresh(self, rdq: Functions) -> None:
        """Read anew what the database says about how to run tasks."""
        self._policies.refresh(rdq.policies(self._queues))
        self._routes.callbacks = self._callbacks.register(rdq.callbacks(self._queues))

    def _finish(self, lease: Lease, outcome: Outcome) -> bool:
        if not self._leases.finish(lease, outcome):
            say(logging.WARNING, "attempt ended after its end was reported", **lease.labels)
            return False
        if isinstance(outcome, Release) and outcome.warning and self._rarely.allows(outcome.reason):
            say(logging.WARNING, "runner cannot work", **lease.labels, reason=outcome.reason)
        self._reports.wake()
        self._claims.freed()
        return True

    def _deliver(self) -> None:
        """Have every session try now: one of them has found the database again."""
        for loop in (self._reports, self._heartbeat, self._claims):
            loop.wake()

    def _guard(self, loop: Loop) -> None:
        """Run a thread; one that fails ends the runner instead of leaving it lame."""
        try:
            loop.run()
        except BaseException as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        reason = next(iter(str(error).splitlines()), None)
        kind = type(error).__name__
        say(logging.CRITICAL, "runner cannot go on", error_type=kind, reason=reason)
        if self.error is None:
            self.error = error
            self._events.put(_Event.STOP)

    def _end(self, *loops: Loop) -> None:
        for loop in loops:
            loop.stop()
        until = time.monotonic() + JOIN_SECONDS
        for loop in loops:
            if thread := self._threads.get(loop):
                thread.join(max(until - time.monotonic(), 0))
