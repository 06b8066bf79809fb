"""The time that an attempt may take, and handlers that run on after it.

Nothing in Python can end a thread. What can be promised of a handler that hangs in one: its attempt
is recorded in time, its late result is refused, and another thread takes its place.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rdq_runner.attempts import timed_out
from rdq_runner.deadlines import Deadlines
from rdq_runner.executor import Finish
from rdq_runner.leases import Lease
from rdq_runner.logs import say

LEAST_LIMIT: Final = 64
SLOTS_FACTOR: Final = 4


class TooManyOverdue(Exception):
    """So many handlers run on after their timeout that only a new process is a cure."""


class Run:
    """What runs, and may do so for longer than it should."""

    def __init__(self, **labels: object) -> None:
        self.labels = labels
        self.ended = False


class Overdue:
    """Counts what runs on; has the runner end, to be started anew, when it is too much.

    :param concurrency: slots of the runner; it bears four times as many, and 64 at least.
    :param give_up: is called once, with the reason.
    """

    def __init__(self, concurrency: int, give_up: Callable[[TooManyOverdue], None]) -> None:
        self._limit = max(LEAST_LIMIT, SLOTS_FACTOR * concurrency)
        self._give_up = give_up
        self._lock = threading.Lock()
        self._runs: set[Run] = set()
        self._given_up = False

    @property
    def count(self) -> int:
        """How many run on."""
        with self._lock:
            return len(self._runs)

    def add(self, run: Run) -> None:
        """Note that something runs on, if it does; the log says what, and how many there are."""
        with self._lock:
            if run.ended:
                return
            self._runs.add(run)
            count = len(self._runs)
            too_many = count >= self._limit and not self._given_up
            self._given_up = self._given_up or too_many
        say(logging.WARNING, "handler runs on after its timeout", **run.labels, overdue=count)
        if too_many:
            self._give_up(
                TooManyOverdue(
                    f"{count} handlers run on after their timeout and hold a thread each: start the"
                    " runner anew, and run what can hang with isolation='process'"
                )
            )

    def end(self, run: Run) -> None:
        """Note that something has ended, late or in time."""
        with self._lock:
            run.ended = True
            self._runs.discard(run)


class TimeLimits:
    """Records an attempt that takes too long as timed out, while its handler runs on."""

    def __init__(self, deadlines: Deadlines, finish: Finish) -> None:
        self.deadlines = deadlines
        self._finish = finish

    @contextmanager
    def limit(
        self, lease: Lease, seconds: float | None, late: Callable[[], object]
    ) -> Iterator[None]:
        """Give the block so much time; then the attempt has ended, and is told so by its flag.

        :param late: is called after that, in the thread of the deadlines: it must not block.
        """
        if seconds is None:
            yield
            return

        def end() -> None:
            if self._finish(lease, timed_out(seconds)):
                lease.cancel()
                late()

        deadline = self.deadlines.after(seconds, end)
        try:
            yield
        finally:
            self.deadlines.call_off(deadline)
