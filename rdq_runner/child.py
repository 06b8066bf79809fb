"""A child process that runs one attempt after the other; the other end of `rdq_runner.children`.

It is a fresh interpreter and not a fork, since a fork of a process with threads may inherit locks
that nobody will release.
"""

import os
import pickle
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from rdq_runner.attempts import attempt
from rdq_runner.handlers import Registration
from rdq_runner.outcomes import Failure, Outcome, describe
from rdq_runner.task import Cancellation, Task


@dataclass(frozen=True)
class Order:
    """An attempt to make; `task` holds the fields of a `Task`."""

    handler: str
    task: Mapping[str, Any]


@dataclass(frozen=True)
class Cancel:
    """The attempt that runs is to stop."""


Message = Order | Cancel


class Child:
    """Reads in a thread of its own, so that a cancellation is heard while a handler runs."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection
        self._orders: SimpleQueue[tuple[Order, Cancellation]] = SimpleQueue()

    def run(self) -> None:
        """Run attempts until the parent is gone."""
        # Each pickled for itself, so that one which cannot be imported does not spoil the others.
        pickled: Mapping[str, bytes] = self._connection.recv()
        handlers = {name: _load(handler) for name, handler in pickled.items()}
        self._connection.send(None)
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            order, cancellation = self._orders.get()
            task = Task(**order.task, cancellation=cancellation)
            self._connection.send(_attempt(handlers[order.handler], task))

    def _read(self) -> None:
        cancellation = Cancellation()
        try:
            while True:
                message: Message = self._connection.recv()
                if isinstance(message, Cancel):
                    cancellation.set()
                else:
                    cancellation = Cancellation()
                    self._orders.put((message, cancellation))
        finally:
            # The parent is gone, and with it the lease: whoever has it next must not find us.
            os._exit(0)


def _load(pickled: bytes) -> Registration | Failure:
    try:
        registration: Registration = pickle.loads(pickled)
    except BaseException as error:
        return describe(error)
    return registration


def _attempt(handler: Registration | Failure, task: Task) -> Outcome:
    if isinstance(handler, Failure):
        return handler
    if handler.memory_limit is None:
        return attempt(handler, task)
    import resource  # only where there is a limit: not every system has it

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = handler.memory_limit if hard < 0 else min(handler.memory_limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        return attempt(handler, task)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def main(descriptor: int) -> None:
    """Be the child whose parent holds the other end of this socket."""
    # A terminal and a service manager signal all processes of a group; when a child ends is the
    # parent's decision. Not SIG_IGN: that would be inherited by what a handler starts.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    Child(Connection(descriptor)).run()
