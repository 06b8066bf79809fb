"""Connections that come back: after a restart, a failover, a silence, a server that is read-only.

Each thread has a connection of its own, in autocommit, so none is ever idle in a transaction. After
any error it is closed and opened anew, since only that finds the new primary. Statements are only
prepared where the server process is ours: behind a pooler the next transaction may be another's.
"""

import logging
import math
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rdq_runner.deadlines import Deadlines
from rdq_runner.logs import say
from rdq_runner.silence import PATIENCE_SECONDS, AsyncConnection, Connection, Watch
from rdq_runner.sql import Functions

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0

CONNECT_SECONDS: Final = 10
# libpq takes less for this.
LEAST_CONNECT_SECONDS: Final = 2

# A statement that is sent so often is prepared at the next time.
PREPARE_AFTER: Final = 2

# A peer that is gone for good is noticed within half a minute, also between two calls.
_PARAMETERS: Final[dict[str, Any]] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "client_encoding": "UTF8",
}

# SQLSTATE classes of trouble that another try may not meet: connection, read-only server, rollback,
# resources, locks, operator, system; rights and functions that somebody has yet to give; a prepared
# statement that is not there, or was prepared for what a function returned before an upgrade.
_OUTAGES: Final = frozenset(
    {"08", "0A", "25", "26", "28", "3F", "40", "42", "53", "55", "57", "58"}
)

# A claim that was held up on its way.
_TOO_LATE: Final = "RD009"


def is_outage(error: psycopg.Error) -> bool:
    """Whether the database could not do it now, rather than cannot take what was sent."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] in _OUTAGES or error.sqlstate == _TOO_LATE


class Database:
    """Where a runner's sessions connect to; says once that they lost it, and once that it is back.

    :param dsn: connection string or URI; what it leaves out comes from libpq's environment.
    :raises psycopg.ProgrammingError: the connection string is not one.
    """

    def __init__(self, dsn: str, application_name: str) -> None:
        self._parameters = {
            **_PARAMETERS,
            "fallback_application_name": application_name,
            **conninfo_to_dict(dsn),
        }
        self._connect_seconds = _seconds(self._parameters["connect_timeout"])
        self.patience = PATIENCE_SECONDS
        self.outages = 0
        # The processes of the server that serve us, and which session each is.
        self.backends: dict[int, str] = {}
        self._lock = threading.Lock()
        self._out: set[str] = set()
        self._deadlines = Deadlines()

    @property
    def out(self) -> bool:
        """Whether some session has lost it."""
        return bool(self._out)

    def connect(self, patience: float | None = None) -> Connection:
        """Open a connection in autocommit.

        :param patience: seconds for each answer of the server, and for the connection if that is
            less than what the connection string says; two are the least for that.
        """
        patience = patience or self.patience
        connection = Connection.connect(
            **self._within(patience), autocommit=True, prepare_threshold=None
        )
        connection.watch = self._watch(patience)
        return connection

    async def connect_async(self) -> AsyncConnection:
        """Open a connection in autocommit, for an event loop."""
        connection = await AsyncConnection.connect(
            **self._within(self.patience), autocommit=True, prepare_threshold=None
        )
        connection.watch = self._watch(self.patience)
        return connection

    def close(self) -> None:
        """Watch no longer over connections: a runner has ended."""
        self._deadlines.stop()

    def _within(self, patience: float) -> dict[str, Any]:
        most = max(math.ceil(patience), LEAST_CONNECT_SECONDS)
        return {**self._parameters, "connect_timeout": min(self._connect_seconds, most)}

    def _watch(self, patience: float) -> Watch:
        self._deadlines.start()
        return Watch(self._deadlines, patience)

    def lost(self, purpose: str, error: psycopg.Error, seen: int) -> None:
        """Note that a session failed.

        :param seen: `outages` when the session connected. One that is over by now may have broken
            this connection as well, as that of a thread that waited: it is no other outage.
        """
        with self._lock:
            first = not self._out
            if first and seen != self.outages:
                return
            self.outages += first
            self._out.add(purpose)
        if first:
            say(
                logging.WARNING,
                "database unavailable" if is_outage(error) else "database refuses",
                session=purpose,
                sqlstate=error.sqlstate,
                error_type=type(error).__name__,
                reason=next(iter(str(error).splitlines()), None),
            )

    def found(self, purpose: str) -> None:
        """Note that a session works."""
        with self._lock:
            last = self._out == {purpose}
            self._out.discard(purpose)
        if last:
            say(logging.INFO, "database available again", session=purpose)


def _seconds(connect_timeout: object) -> int:
    """Return how long a connection may take to open; to libpq zero means for ever."""
    try:
        seconds = int(str(connect_timeout))
    except ValueError as error:
        raise psycopg.ProgrammingError(f"bad connect_timeout: {connect_timeout}") from error
    return seconds if seconds > 0 else int(PATIENCE_SECONDS)


class Session:
    """One thread's connection: opened when it is needed, closed at an error.

    :param opened: is called with every new connection before anything else.
    :param quiet: no work depends on it, so its failures say nothing about the database.
    """

    def __init__(
        self,
        database: Database,
        purpose: str,
        opened: Callable[[Functions], None] = lambda rdq: None,
        *,
        quiet: bool = False,
    ) -> None:
        self.purpose = purpose
        self._database = database
        self._opened = opened
        self._quiet = quiet
        self.patience = database.patience
        """Seconds for each answer of the database; then the connection is given up."""
        self._connection: Connection | None = None
        self._outages = 0
        self._failures = 0

    @contextmanager
    def functions(self) -> Iterator[Functions]:
        """Give the functions of the schema; an error of theirs ends the connection too."""
        try:
            yield Functions(self._connection_now())
        except psycopg.Error as error:
            self.close()
            self._failures += 1
            if not self._quiet:
                self._database.lost(self.purpose, error, self._outages)
            raise
        self._failures = 0
        if not self._quiet:
            self._database.found(self.purpose)

    @property
    def pause(self) -> float:
        """Seconds to wait before the next try: longer with every failure in a row, and jittered."""
        # The exponent is bounded because 2.0**1024 overflows.
        longest = FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 16)
        return min(longest, LONGEST_PAUSE_SECONDS) * random.uniform(0.5, 1)

    def _connection_now(self) -> psycopg.Connection:
        # What one session has lost, the others have probably lost too: they need not find out.
        if self._connection is None or self._outages != self._database.outages:
            self.close()
            self._outages = self._database.outages
            self._connection = self._database.connect(self.patience)
            self._database.backends[self._connection.info.backend_pid] = self.purpose
            rdq = Functions(self._connection)
            if rdq.is_direct():
                self._connection.prepare_threshold = PREPARE_AFTER
            self._opened(rdq)
        if self._connection.watch:
            self._connection.watch.patience = self.patience
        return self._connection

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._database.backends.pop(connection.info.backend_pid, None)
            connection.close()
