"""What is to happen at a moment unless it is called off, in a thread that nothing holds up."""

import logging
import threading
import time
from collections.abc import Callable

from rdq_runner.logs import say


class Deadline:
    """Something that will be done at a moment of `time.monotonic`."""

    __slots__ = ("act", "when")

    def __init__(self, when: float, act: Callable[[], object]) -> None:
        self.when = when
        self.act = act


class Deadlines:
    """Does things in time. They are few at once, some for each slot: looking at all is cheap."""

    def __init__(self) -> None:
        self._deadlines: set[Deadline] = set()
        self._next = float("inf")
        self._changed = threading.Condition()
        self._started = False
        self._stopped = False

    def start(self) -> None:
        """Start the thread, unless it was before."""
        with self._changed:
            first = not self._started
            self._started = True
        if first:
            threading.Thread(target=self._run, name="rdq-deadlines", daemon=True).start()

    def stop(self) -> None:
        """End the thread; what is not due yet will not be done."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def after(self, seconds: float, act: Callable[[], object]) -> Deadline:
        """Call `act` in so many seconds, in the thread of all deadlines: it must not block."""
        deadline = Deadline(time.monotonic() + seconds, act)
        with self._changed:
            self._deadlines.add(deadline)
            if deadline.when < self._next:
                self._changed.notify()
        return deadline

    def call_off(self, deadline: Deadline) -> None:
        """Let it not happen, if it has not yet."""
        with self._changed:
            self._deadlines.discard(deadline)

    def _run(self) -> None:
        while (due := self._wait()) is not None:
            for deadline in due:
                try:
                    deadline.act()
                except Exception as error:  # one must not end the others
                    say(logging.ERROR, "deadline failed", error_type=type(error).__name__)

    def _wait(self) -> list[Deadline] | None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                due = [deadline for deadline in self._deadlines if deadline.when <= now]
                if due:
                    self._deadlines.difference_update(due)
                    return due
                self._next = min((d.when for d in self._deadlines), default=float("inf"))
                # A lock's wait has a longest time.
                self._changed.wait(min(self._next - now, threading.TIMEOUT_MAX))
            return None
