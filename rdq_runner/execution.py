"""Runs the handlers that are Python functions: in a thread, an event loop or a child process."""

from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial

from rdq_runner.attempts import attempt, version_mismatch
from rdq_runner.children import Children
from rdq_runner.coroutines import Attempt, Coroutines
from rdq_runner.deadlines import Deadlines
from rdq_runner.executor import Finish
from rdq_runner.handlers import Handlers, Registration
from rdq_runner.leases import Lease
from rdq_runner.outcomes import Outcome, describe
from rdq_runner.overdue import Overdue, Run, TimeLimits, TooManyOverdue
from rdq_runner.policies import Policies
from rdq_runner.sessions import Database
from rdq_runner.slots import Slots
from rdq_runner.transactions import Transactions

Body = Callable[[Registration, Lease, float | None], Outcome]
"""Runs a handler to its end, in the thread that calls it; the timeout is in seconds."""


class Execution:
    """The executor of Python functions.

    :param finish: is told how each attempt ended, by the first who knows.
    :param give_up: is called with the reason when the process must be started anew.
    :raises ValueError: a handler cannot be run as its options say.
    """

    def __init__(
        self,
        handlers: Handlers,
        policies: Policies,
        database: Database,
        concurrency: int,
        *,
        finish: Finish,
        give_up: Callable[[TooManyOverdue], None],
    ) -> None:
        self._handlers = handlers
        self._policies = policies
        self._finish = finish
        self._deadlines = Deadlines()
        limits = TimeLimits(self._deadlines, finish)
        self._limits = limits
        self._overdue = Overdue(concurrency, give_up)
        self._slots = Slots(concurrency)
        self._transactions = Transactions(database, limits, self._overdue, concurrency)
        self._children = Children(handlers, limits)
        self._coroutines = Coroutines(database, limits, self._overdue, finish)

    @property
    def overdue(self) -> int:
        """How many handlers run on after their timeout."""
        return self._overdue.count

    def start(self) -> None:
        """Be ready to run."""
        self._deadlines.start()
        self._children.start()

    def run(self, leases: Sequence[Lease]) -> None:
        """Begin attempts, and return at once."""
        calls: list[Callable[[], None]] = []
        coroutines: list[Attempt] = []
        for lease in leases:
            handler = self._handlers.registration(lease.claim.handler)
            policy = self._policies.of(lease.claim.queue)
            timeout = policy.handler_timeout if handler.timeout is None else handler.timeout
            mismatch = version_mismatch(handler, lease.task)
            if mismatch and policy.on_version_mismatch == "dead":
                self._finish(lease, mismatch)
            elif handler.is_async:
                coroutines.append(Attempt(handler, lease, timeout))
            else:
                body = self._body(handler)
                calls.append(partial(self._attempt, body, handler, lease, timeout))
        if calls:
            self._slots.run(calls)
        if coroutines:
            self._coroutines.run(coroutines)

    def stop(self) -> None:
        """End what still runs, as far as it can be ended; it is handed back."""
        self._coroutines.stop()
        self._children.stop()
        self._transactions.stop()
        self._slots.stop()
        self._deadlines.stop()

    def _body(self, handler: Registration) -> Body:
        if handler.isolation == "process":
            return self._children.attempt
        return self._transactions.attempt if handler.transactional else self._in_this_thread

    def _in_this_thread(
        self, handler: Registration, lease: Lease, timeout: float | None
    ) -> Outcome:
        if timeout is None:
            return attempt(handler, lease.task)
        run = Run(**lease.labels)
        try:
            with self._limits.limit(lease, timeout, lambda: self._overdue.add(run)):
                return attempt(handler, lease.task)
        finally:
            self._overdue.end(run)

    def _attempt(
        self, body: Body, handler: Registration, lease: Lease, timeout: float | None
    ) -> None:
        try:
            # In a context of its own: what an attempt sets there, the next one does not see.
            outcome = Context().run(body, handler, lease, timeout)
        except BaseException as error:  # our own mistake must cost one attempt, and no thread
            outcome = describe(error)
        self._finish(lease, outcome)
