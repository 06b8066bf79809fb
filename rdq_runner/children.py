"""Runs handlers in child processes: what happens to one costs one attempt, and can be ended.

A child is started when no other is free, and kept for the next attempts: it has imported what its
handlers need. After so many it is replaced, so that what leaks does not grow.
"""

import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from multiprocessing import Pipe
from typing import Any, Final

from rdq_runner.child import Cancel, Message, Order
from rdq_runner.handlers import Handlers, HandlersError, Registration
from rdq_runner.leases import Lease
from rdq_runner.outcomes import Failure, Outcome, Release
from rdq_runner.overdue import TimeLimits
from rdq_runner.task import Task

ATTEMPTS: Final = 1000
START_SECONDS: Final = 60.0
# After its time a handler has so long to heed its cancellation; then its process is killed.
KILL_SECONDS: Final = 1.0
# What a handler has started may keep the socket open: so the process itself is looked at too.
LOOK_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 10.0

_PROGRAM: Final = (
    "import sys; descriptor, sys.path[:] = int(sys.argv[1]), sys.argv[2:]; sys.argv[:] = ['rdq'];"
    "from rdq_runner.child import main; main(descriptor)"
)
_FIELDS: Final = [field.name for field in fields(Task) if field.name != "cancellation"]


class _Child:
    def __init__(self, handlers: Mapping[str, bytes]) -> None:
        self.attempts = 0
        self._lease: Lease | None = None
        self._lock = threading.Lock()
        self._connection, theirs = Pipe()
        with theirs:
            descriptor = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(descriptor), *sys.path],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
            )
        self._connection.send(handlers)
        self._ready = False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait for the imports.

        :raises EOFError: the process ended, or took too long.
        """
        if not self._ready:
            self._receive(START_SECONDS)
            self._ready = True

    def attempt(self, lease: Lease) -> Outcome:
        """Have an attempt made.

        :raises EOFError, OSError: the process ended.
        """
        self.attempts += 1
        task = {name: getattr(lease.task, name) for name in _FIELDS}
        self._connection.send(Order(lease.claim.handler, task))
        with self._lock:
            self._lease = lease
        lease.task.cancellation.then(lambda: self._cancel(lease))
        try:
            outcome: Outcome = self._receive()
        finally:
            with self._lock:
                self._lease = None
        return outcome

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()

    def end(self) -> int:
        """End the process, if it has not ended itself; return its exit code, or minus a signal."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(0 if self._lease is None and self._ready else KILL_SECONDS)
        self.kill()
        return self._process.wait()

    def _receive(self, seconds: float = float("inf")) -> Any:
        end = time.monotonic() + seconds
        while not self._connection.poll(LOOK_SECONDS):
            # A last look, since it may have answered before it ended.
            if (not self.alive or time.monotonic() > end) and not self._connection.poll():
                raise EOFError
        return self._connection.recv()

    def _cancel(self, lease: Lease) -> None:
        # Later the process has another attempt, which must not be taken for this one.
        with self._lock, suppress(OSError):
            if self._lease is lease:
                self._send(Cancel())

    def _send(self, message: Message) -> None:
        self._connection.send(message)


class Children:
    """The children of a runner; there are never more than attempts at once.

    :raises HandlersError: a handler is not at the top level of a module that a child can import.
    """

    def __init__(self, handlers: Handlers, limits: TimeLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()
        self._stopped = False
        self._handlers = {
            handler.name: _pickled(handler)
            for handler in handlers.registrations()
            if handler.isolation == "process"
        }

    def start(self) -> None:
        """Start a first child, if there is a handler for it: its imports take a while."""
        if self._handlers:
            self._keep_warm()

    def attempt(self, handler: Registration, lease: Lease, timeout: float | None) -> Outcome:
        """Run a handler in a child, to its end or the child's."""
        try:
            child = self._take()
        except OSError as error:  # the machine has no room for it now
            reason = f"no child process could be started: {type(error).__name__}"
            return Release(reason, RETRY_SECONDS)
        try:
            child.wait_until_ready()
        except (EOFError, OSError):
            return self._died(child, "before the handler began", began=False)

        def late() -> None:
            self._limits.deadlines.after(KILL_SECONDS, child.kill)

        try:
            with self._limits.limit(lease, timeout, late):
                outcome = child.attempt(lease)
        except Exception:
            return self._died(child, "while the handler ran", began=True)
        # After a timeout it is about to be killed; out of memory, anything may have broken.
        spoilt = lease.outcome is not None or (
            handler.memory_limit is not None and isinstance(outcome, Failure)
        )
        self._give_back(child, spoilt)
        return outcome

    def stop(self) -> None:
        """Kill all children: what they ran is handed back, and runs no more by then."""
        with self._lock:
            self._stopped = True
            children = list(self._all)
        for child in children:
            child.kill()
        for child in children:
            child.end()

    def _take(self) -> _Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    return child
                self._all.discard(child)
        return self._begin()

    def _begin(self) -> _Child:
        child = _Child(self._handlers)
        with self._lock:
            self._all.add(child)
            if self._stopped:
                child.kill()
        return child

    def _keep_warm(self) -> None:
        with suppress(OSError):
            child = self._begin()
            with self._lock:
                self._idle.append(child)

    def _give_back(self, child: _Child, spoilt: bool) -> None:
        if spoilt or child.attempts >= ATTEMPTS:
            self._forget(child)
            self._keep_warm()
        else:
            with self._lock:
                self._idle.append(child)

    def _forget(self, child: _Child) -> int:
        with self._lock:
            self._all.discard(child)
        return child.end()

    def _died(self, child: _Child, when: str, *, began: bool) -> Outcome:
        code = self._forget(child)
        if self._stopped:
            return Release("shutdown")
        how, detail = _ending(code)
        return Failure(
            "rdq_runner.ChildDied",
            f"the child process ended {when}: {how}",
            detail=detail,
            # Where the handler has not begun, another attempt meets another process.
            error_class="AMBIGUOUS" if began else "TRANSIENT",
        )


def _ending(code: int) -> tuple[str, dict[str, Any]]:
    if code >= 0:
        return f"exit code {code}", {"exit_code": code}
    try:
        name = signal.Signals(-code).name
    except ValueError:  # of real time
        name = str(-code)
    return f"signal {name}", {"signal": name}


def _pickled(handler: Registration) -> bytes:
    if handler.function.__module__ == "__main__":
        raise HandlersError(
            f"handler {handler.name!r} is in the program's main module: a child process cannot"
            " import that, so put it in another one"
        )
    try:
        return pickle.dumps(handler)
    except Exception as error:
        raise HandlersError(
            f"handler {handler.name!r} cannot be given to a child process: it must be found at the"
            f" top level of its module ({type(error).__name__}: {error})"
        ) from error
