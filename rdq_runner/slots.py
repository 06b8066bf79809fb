"""Threads that run plain functions, and that wait for those which run in other processes."""

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue


class Slots:
    """Threads of which none keeps the process alive: a handler that hangs cannot stop a shutdown.

    A thread is started when all others are busy. So one whose handler runs on after its timeout is
    replaced, and works again should the handler ever return.

    :param most_idle: how many threads are kept for later.
    """

    def __init__(self, most_idle: int) -> None:
        self._most_idle = most_idle
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._started = 0
        self._stopped = False

    def run(self, work: Sequence[Callable[[], None]]) -> None:
        """Do some works, which must not raise, each in a thread that is free or new."""
        with self._lock:
            first = self._started
            self._started += max(len(work) - self._idle, 0)
            self._idle = max(self._idle - len(work), 0)
            numbers = range(first, self._started)
        for one in work:
            self._inbox.put(one)
        for number in numbers:
            name = f"rdq-slot-{number + 1}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def stop(self) -> None:
        """End each thread when its work is done."""
        with self._lock:
            self._stopped = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._inbox.put(None)

    def _work(self) -> None:
        while (work := self._inbox.get()) is not None:
            work()
            with self._lock:
                if self._stopped or self._idle >= self._most_idle:
                    return
                self._idle += 1
