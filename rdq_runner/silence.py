"""Connections that are given up when the server no longer answers, though nothing says so.

A network that drops packets, a proxy whose server is gone, a server process that is stopped: TCP
may take such a peer for alive, for hours. So every wait for an answer has a longest time. When two
thirds of it are over the server is asked to cancel, since one that is alive, but waits for a lock,
would otherwise go on for a client that has left. At the end the socket is shut, by another thread:
the wait then fails as with any lost connection.
"""

import asyncio
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg

from rdq_runner.deadlines import Deadlines

PATIENCE_SECONDS: Final = 30.0
# The share of a wait after which the server is asked to cancel.
UNTIL_CANCEL: Final = 2 / 3


class NoAnswer(psycopg.OperationalError):
    """The server kept us waiting for too long."""


def shut(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Have the call that another thread is in fail; the caller knows that it is in one still.

    Closing the connection here would free what the other thread is in. When that closes it, what
    was not sent yet is dropped: or else the server might take a claim for which nobody waits.
    """
    with (
        suppress(psycopg.Error, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as twin,
    ):
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        twin.shutdown(socket.SHUT_RDWR)


class Watch:
    """How long a connection may keep its user waiting.

    :param patience: seconds for each answer.
    """

    def __init__(self, deadlines: Deadlines, patience: float) -> None:
        self.deadlines = deadlines
        self.patience = patience
        self.excused: Callable[[], bool] | None = None
        """Whether an answer may take still longer."""
        self.answered_at = float("-inf")
        """When the server answered last, by `time.monotonic`."""
        self.waited = 0.0
        """The longest that an answer took, in seconds; who wants to know begins with none."""

    def answered(self, asked_at: float) -> None:
        """Note an answer."""
        self.answered_at = time.monotonic()
        self.waited = max(self.waited, self.answered_at - asked_at)


class _Wait:
    """One wait for an answer."""

    def __init__(
        self, watch: Watch, cancel: Callable[[float], object], shut: Callable[[], None]
    ) -> None:
        self.given_up = False
        self._watch = watch
        self._cancel = cancel
        self._shut = shut
        self._lock = threading.Lock()
        self._ended = False
        self._patience = watch.patience
        self._deadline = watch.deadlines.after(self._patience * UNTIL_CANCEL, self._late)

    def end(self) -> None:
        """Note that it is over."""
        with self._lock:
            self._ended = True
            self._watch.deadlines.call_off(self._deadline)

    def error(self) -> NoAnswer:
        """Return what to raise for a wait that was given up."""
        return NoAnswer(f"no answer within {self._patience:g} s: the connection is given up")

    def _late(self) -> None:
        with self._lock:
            if self._ended:
                return
            excused = self._watch.excused
            if excused and excused():
                self._deadline = self._watch.deadlines.after(self._patience, self._late)
                return
            self.given_up = True
            rest = self._patience * (1 - UNTIL_CANCEL)
            self._deadline = self._watch.deadlines.after(rest, self._too_late)
        self._cancel(rest)

    def _too_late(self) -> None:
        with self._lock:
            if not self._ended:
                self._shut()


class Connection(psycopg.Connection[Any]):
    """A connection that is watched, once it has a watch."""

    watch: Watch | None = None

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server.

        :raises NoAnswer: it took too long.
        """
        if self.watch is None:
            return super().wait(*args, **kwargs)
        wait = _Wait(self.watch, self._cancel_aside, lambda: shut(self))
        asked_at = time.monotonic()
        try:
            result = super().wait(*args, **kwargs)
            if kwargs.get("timeout") is None:  # as what waits for notices has, which are no answer
                self.watch.answered(asked_at)
            return result
        except psycopg.OperationalError as error:
            if wait.given_up:
                raise wait.error() from error
            raise
        finally:
            wait.end()

    def _cancel_aside(self, seconds: float) -> None:
        def cancel() -> None:
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=seconds)

        threading.Thread(target=cancel, name="rdq-cancel", daemon=True).start()


class AsyncConnection(psycopg.AsyncConnection[Any]):
    """A connection that is watched, once it has a watch."""

    watch: Watch | None = None

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server.

        :raises NoAnswer: it took too long.
        """
        if self.watch is None:
            return await super().wait(*args, **kwargs)
        loop = asyncio.get_running_loop()

        async def cancel(seconds: float) -> None:
            with suppress(psycopg.Error):
                await self.cancel_safe(timeout=seconds)

        def cancel_aside(seconds: float) -> None:
            coroutine = cancel(seconds)
            try:
                asyncio.run_coroutine_threadsafe(coroutine, loop)
            except RuntimeError:  # the loop has ended
                coroutine.close()

        wait = _Wait(self.watch, cancel_aside, lambda: shut(self))
        try:
            return await super().wait(*args, **kwargs)
        except psycopg.OperationalError as error:
            if wait.given_up:
                raise wait.error() from error
            raise
        finally:
            wait.end()
