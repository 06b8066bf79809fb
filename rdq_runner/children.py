"""Runs handlers in child processes: what happens to one costs one attempt, and can be ended.

A child is started when no other is free, and kept for the next attempts: it has imported what its
handlers need. After so many it is replaced, so that what leaks does not grow.
"""

import os
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

from rdq_runner.child import Cancel, Message, NotBegun, Order
from rdq_runner.handlers import Handlers, HandlersError, Registration
from rdq_runner.leases import Lease
from rdq_runner.outcomes import Failure, Outcome, Release
from rdq_runner.overdue import TimeLimits
from rdq_runner.shortages import RETRY_SECONDS
from rdq_runner.task import Task

ATTEMPTS: Final = 1000
START_SECONDS: Final = 60.0
# After its time a handler has so long to heed its cancellation; then its process is killed.
KILL_SECONDS: Final = 1.0
# What a handler has started may keep the socket open: so the process itself is looked at too.
LOOK_SECONDS: Final = 0.5

_PROGRAM: Final = (
    "import sys; ends, sys.path[:] = [int(n) for n in sys.argv[1:3]], sys.argv[3:];"
    "sys.argv[:] = ['rdq']; from rdq_runner.child import main; main(*ends)"
)
_FIELDS: Final = [field.name for field in fields(Task) if field.name != "cancellation"]


class _Child:
    def __init__(self, handlers: Mapping[str, bytes]) -> None:
        self.attempts = 0
        self._lease: Lease | None = None
        self._lock = threading.Lock()
        self._connection, theirs = Pipe()
        # Closed when this process ends, however it does.
        alive, self._alive = os.pipe()
        ends = (theirs.fileno(), alive)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, *map(str, ends), *sys.path],
                pass_fds=ends,
                stdin=subprocess.DEVNULL,
                # What a handler starts belongs to its child, and goes with it.
                process_group=0,
            )
        except BaseException:
            os.close(self._alive)
            raise
        finally:
            theirs.close()
            os.close(alive)
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

    def attempt(self, lease: Lease) -> Outcome | NotBegun:
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
            outcome: Outcome | NotBegun = self._receive()
        finally:
            with self._lock:
                self._lease = None
        return outcome

    def kill(self) -> None:
        """End the process and all that it has started, whatever they do."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> int:
        """End the process, if it has not ended itself; return its exit code, or minus a signal."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0 if self._lease is None and self._ready else KILL_SECONDS)
        # Also where it has ended: what it started may go on.
        self.kill()
        with self._lock:
            if self._alive >= 0:
                os.close(self._alive)
                self._alive = -1
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
            return Release(reason, RETRY_SECONDS, warning=True)
        try:
            child.wait_until_ready()
        except (EOFError, OSError):
            how, _ = _ending(self._forget(child))
            return self._not_begun(f"a child process ended before the handler began: {how}")

        def late() -> None:
            self._limits.deadlines.after(KILL_SECONDS, child.kill)

        try:
            with self._limits.limit(lease, timeout, late):
                outcome = child.attempt(lease)
        except Exception:
            return self._died(child)
        if isinstance(outcome, NotBegun):
            # Another process imports it anew: its files may be good again by then.
            self._forget(child)
            return self._not_begun(outcome.reason)
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

    def _not_begun(self, reason: str) -> Release:
        # That is the runner's trouble, and not the task's.
        if self._stopped:
            return Release("shutdown")
        return Release(reason, RETRY_SECONDS, warning=True)

    def _died(self, child: _Child) -> Outcome:
        code = self._forget(child)
        if self._stopped:
            return Release("shutdown")
        how, detail = _ending(code)
        return Failure(
            "rdq_runner.ChildDied",
            f"the child process ended while the handler ran: {how}",
            detail=detail,
            error_class="AMBIGUOUS",
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
