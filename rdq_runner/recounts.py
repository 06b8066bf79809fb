"""Counts of what waits and is dead, where that takes long: done aside, so that no scrape waits."""

import logging
import threading
import time
from contextlib import suppress
from typing import Final

import psycopg

from rdq_runner.logs import say
from rdq_runner.sessions import Database
from rdq_runner.silence import UNTIL_CANCEL, Connection
from rdq_runner.sql import Functions

# As long as a few thousand million tasks take.
STATEMENT_SECONDS: Final = 300.0
# The statement ends before the connection is given up.
PATIENCE_SECONDS: Final = 1.1 * STATEMENT_SECONDS / UNTIL_CANCEL
# One that took too long is tried again after so many times that; rdq itself keeps to it where one
# succeeds.
REST: Final = 100
# A server that is lost does not hold up the end of a runner.
CANCEL_SECONDS: Final = 1.0


class Recounts:
    """Has ``rdq.refresh_queue_stats`` called, once at a time, by a thread with its own connection.

    That one fails is nobody else's failure: it is said in the log.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._closed = False
        self._rests_until = float("-inf")

    def begin(self) -> None:
        """Begin one, unless one is under way or the last has failed not long ago."""
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if self._closed or busy or time.monotonic() < self._rests_until:
                return
            self._thread = threading.Thread(target=self._count, name="rdq-recount", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Begin none any more, and have the server end the one that is under way."""
        with self._lock:
            self._closed = True
            connection = self._connection
        if connection:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CANCEL_SECONDS)

    def _count(self) -> None:
        began_at = time.monotonic()
        try:
            with self._database.connect(PATIENCE_SECONDS) as connection:
                with self._lock:
                    if self._closed:
                        return
                    self._connection = connection
                rdq = Functions(connection)
                with rdq.within(STATEMENT_SECONDS):
                    rdq.refresh_queue_stats()
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.QueryCanceled):
                self._rests_until = time.monotonic() + REST * (time.monotonic() - began_at)
            if not self._closed:
                say(
                    logging.WARNING,
                    "the queues are not counted",
                    sqlstate=error.sqlstate,
                    error_type=type(error).__name__,
                )
        finally:
            with self._lock:
                self._connection = None
