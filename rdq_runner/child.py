"""A child process that runs one attempt after the other; the other end of `rdq_runner.children`.

It is a fresh interpreter and not a fork, since a fork of a process with threads may inherit locks
that nobody will release.
"""

import contextvars
import os
import pickle
import select
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from rdq_runner import signals, storable
from rdq_runner.attempts import attempt
from rdq_runner.handlers import Registration
from rdq_runner.outcomes import Outcome
from rdq_runner.task import Cancellation, Task

_REASON_BYTES = 1000


@dataclass(frozen=True)
class Order:
    """An attempt to make; `task` holds the fields of a `Task`."""

    handler: str
    task: Mapping[str, Any]


@dataclass(frozen=True)
class Cancel:
    """The attempt that runs is to stop."""


Message = Order | Cancel


@dataclass(frozen=True)
class NotBegun:
    """The handler could not be imported here: nothing has happened, and this process is no good."""

    reason: str


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
            # In a context of its own: what an attempt sets there, the next one does not see.
            context = contextvars.Context()
            self._connection.send(context.run(_attempt, handlers[order.handler], task))

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


def _load(pickled: bytes) -> Registration | NotBegun:
    try:
        registration: Registration = pickle.loads(pickled)
    except BaseException as error:
        text = storable.text(f"{type(error).__name__}: {error}", _REASON_BYTES)
        return NotBegun(f"the handler could not be imported in a child process: {text}")
    return registration


def _attempt(handler: Registration | NotBegun, task: Task) -> Outcome | NotBegun:
    if isinstance(handler, NotBegun):
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


def _end_with_parent(alive: int) -> None:
    """Have the kernel end this process and what it has started when its parent is gone.

    :param alive: the end of a pipe that the parent holds open, and nobody writes to.

    SIGIO ends a process that does not handle it, and needs no interpreter for that: code in C, such
    as a regular expression that backtracks, may hold the interpreter's lock for hours.
    """
    with suppress(ImportError, AttributeError, OSError):
        import fcntl  # not every system has it, nor all of this: then a thread notices

        fcntl.fcntl(alive, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(alive, fcntl.F_SETFL, fcntl.fcntl(alive, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([alive], [], [], 0)[0]:
        os._exit(0)


def main(descriptor: int, alive: int) -> None:
    """Be the child whose parent holds the other ends of this socket and this pipe."""
    _end_with_parent(alive)
    # A service manager signals all processes of a service; when a child ends is the parent's
    # decision. Not SIG_IGN: that would be inherited by what a handler starts.
    with signals.taken((signal.SIGINT, signal.SIGTERM), lambda: None):
        Child(Connection(descriptor)).run()
