"""Runs async handlers, all on one event loop in a thread of its own.

A handler that blocks the loop holds up the other async ones. So a loop that does not answer is left
to itself, and what has not begun yet begins on a new one.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, cast

from rdq_runner.attempts import outcome_of
from rdq_runner.deadlines import Deadline
from rdq_runner.executor import Finish
from rdq_runner.handlers import Registration
from rdq_runner.leases import Lease
from rdq_runner.logs import say
from rdq_runner.outcomes import Outcome, Release, Success
from rdq_runner.overdue import Overdue, Run, TimeLimits
from rdq_runner.sessions import Database
from rdq_runner.transactions import AsyncTransactions

# An attempt that has not begun after so long shows that its loop is blocked.
BEGIN_SECONDS: Final = 5.0
# A handler that is cancelled has so long to end, and its loop to answer.
CANCEL_SECONDS: Final = 1.0
STOP_SECONDS: Final = 2.0


class EventLoop:
    """An event loop in a thread that does not keep the process alive."""

    def __init__(self, database: Database) -> None:
        self.transactions = AsyncTransactions(database)
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._main = self._loop.create_task(self._serve())
        self._thread = threading.Thread(target=self._run, name="rdq-async", daemon=True)
        self._thread.start()

    def submit(self, coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Run coroutines, which must not raise; they are made in the loop's thread."""
        self.call(lambda: self._begin(coroutines))

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop's thread, unless that has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def drain(self) -> None:
        """End when all that runs has ended."""
        self.call(self._closing.set)

    def stop(self) -> None:
        """Cancel what runs, and end."""
        self.call(self._cancel)
        self.drain()

    def join(self, seconds: float) -> None:
        """Wait for the end."""
        self._thread.join(seconds)

    def _begin(self, coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
        for coroutine in coroutines:
            # In a context of its own: what an attempt sets there, the next one does not see.
            task = self._loop.create_task(coroutine, context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _serve(self) -> None:
        await self._closing.wait()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.transactions.close()

    def _run(self) -> None:
        while not self._main.done():
            try:
                self._loop.run_until_complete(self._main)
            except BaseException as error:
                # SystemExit of a task that a handler has left behind goes through the loop.
                say(logging.ERROR, "event loop interrupted", error_type=type(error).__name__)
        with suppress(Exception):
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


@dataclass(eq=False, slots=True)
class Attempt:
    """One call of a coroutine function; the timeout is in seconds."""

    handler: Registration
    lease: Lease
    timeout: float | None
    batch: "_Batch | None" = None


@dataclass(eq=False, slots=True)
class _Batch:
    """Attempts that begin together on a loop.

    :param waiting: how many have not begun.
    """

    loop: EventLoop
    waiting: int
    begins_until: Deadline | None = None


class Coroutines:
    """Runs coroutine functions.

    :param finish: is told how each attempt ended, in the loop's thread or that of the deadlines.
    """

    def __init__(
        self, database: Database, limits: TimeLimits, overdue: Overdue, finish: Finish
    ) -> None:
        self._database = database
        self._limits = limits
        self._overdue = overdue
        self._finish = finish
        self._lock = threading.Lock()
        self._loop: EventLoop | None = None
        self._left: list[EventLoop] = []
        self._waiting: set[Attempt] = set()
        self._running: set[Attempt] = set()

    def run(self, attempts: Sequence[Attempt]) -> None:
        """Begin attempts, and return at once."""
        with self._lock:
            loop = self._loop = self._loop or EventLoop(self._database)
            batch = _Batch(loop, len(attempts))
            batch.begins_until = self._limits.deadlines.after(
                BEGIN_SECONDS, lambda: self._check_begun(batch)
            )
            for attempt in attempts:
                attempt.batch = batch
            self._waiting.update(attempts)
        loop.submit(self._attempt(attempt, batch) for attempt in attempts)

    def stop(self) -> None:
        """Hand back what runs, and cancel it."""
        with self._lock:
            running = [*self._running, *self._waiting]
            loops = [*self._left, self._loop] if self._loop else []
        for attempt in running:
            self._finish(attempt.lease, Release("shutdown"))
        for loop in loops:
            loop.stop()
        if self._loop:
            self._loop.join(STOP_SECONDS)

    async def _attempt(self, attempt: Attempt, batch: _Batch) -> None:
        with self._lock:
            if attempt not in self._waiting:
                return  # it has begun on another loop
            self._waiting.discard(attempt)
            self._running.add(attempt)
            self._note_begun(attempt)
        try:
            if attempt.timeout is None:
                outcome = await _outcome(attempt.handler, attempt.lease, batch.loop)
            else:
                outcome = await self._in_time(attempt, attempt.timeout, batch.loop)
        finally:
            with self._lock:
                self._running.discard(attempt)
        self._finish(attempt.lease, outcome)

    def _note_begun(self, attempt: Attempt) -> None:
        # It may begin on a loop that was left, before the new one has come to it.
        batch = attempt.batch
        if batch:
            batch.waiting -= 1
            if not batch.waiting and batch.begins_until:
                self._limits.deadlines.call_off(batch.begins_until)

    async def _in_time(self, attempt: Attempt, timeout: float, loop: EventLoop) -> Outcome:
        lease = attempt.lease
        run = Run(**lease.labels)
        task = asyncio.current_task()
        assert task
        late = lambda: self._cancel(loop, task, run)  # noqa: E731
        try:
            with self._limits.limit(lease, timeout, late):
                return await _outcome(attempt.handler, lease, loop)
        finally:
            self._overdue.end(run)

    def _cancel(self, loop: EventLoop, task: asyncio.Task[Any], run: Run) -> None:
        answered = threading.Event()
        loop.call(task.cancel)
        loop.call(answered.set)

        def check() -> None:
            self._overdue.add(run)
            if not answered.is_set():
                self._leave(loop)

        self._limits.deadlines.after(CANCEL_SECONDS, check)

    def _check_begun(self, batch: _Batch) -> None:
        with self._lock:
            late = batch.waiting > 0
        if late:
            self._leave(batch.loop)

    def _leave(self, loop: EventLoop) -> None:
        """Let a loop that is blocked do what it has begun, and no more."""
        with self._lock:
            if self._loop is not loop:
                return
            self._loop = None
            self._left.append(loop)
            waiting = list(self._waiting)
        say(logging.WARNING, "an async handler blocks its event loop: others begin on a new one")
        loop.drain()
        if waiting:
            self.run(waiting)


async def _outcome(handler: Registration, lease: Lease, loop: EventLoop) -> Outcome:
    if handler.transactional:
        return await loop.transactions.attempt(handler, lease)
    try:
        await cast(Awaitable[object], handler.function(lease.task))
    except BaseException as error:
        return outcome_of(error, handler, lease.task)
    return Success()
