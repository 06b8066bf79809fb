"""The threads that run handlers: as many as tasks are ever claimed at once, so that none waits."""

import inspect
import threading
from collections.abc import Callable
from queue import SimpleQueue

from rdq_runner.handlers import Handler
from rdq_runner.leases import Lease
from rdq_runner.outcomes import Cancelled, Outcome, Release, Success, describe
from rdq_runner.task import Task


class Slots:
    """Threads of which none keeps the process alive: a handler that hangs cannot stop a shutdown.

    :param finished: is told how each attempt ended, in the slot's thread.
    """

    def __init__(self, count: int, finished: Callable[[Lease, Outcome], None]) -> None:
        self._count = count
        self._finished = finished
        self._inbox: SimpleQueue[tuple[Handler, Lease] | None] = SimpleQueue()

    def start(self) -> None:
        """Start the threads."""
        for number in range(self._count):
            threading.Thread(target=self._work, name=f"rdq-slot-{number}", daemon=True).start()

    def run(self, handler: Handler, lease: Lease) -> None:
        """Run a handler in a slot that is free."""
        self._inbox.put((handler, lease))

    def stop(self) -> None:
        """End each thread when its handler has ended."""
        for _ in range(self._count):
            self._inbox.put(None)

    def _work(self) -> None:
        while (work := self._inbox.get()) is not None:
            handler, lease = work
            self._finished(lease, attempt(handler, lease.task))


def attempt(handler: Handler, task: Task) -> Outcome:
    """Run a handler once; whatever it raises is a failure, SystemExit and its like too."""
    try:
        answer = handler(task)
        if inspect.isawaitable(answer) or inspect.isgenerator(answer):
            raise TypeError(f"the handler returned a {type(answer).__name__}, which nobody runs")
    except BaseException as error:
        if issubclass(type(error), Cancelled) and task.cancelled:
            return Release("the handler stopped because it was cancelled")
        return describe(error)
    return Success()
