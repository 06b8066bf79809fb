"""Connections that come back: after a restart, a failover, a server that became read-only.

Each thread has a connection of its own, in autocommit, so none is ever idle in a transaction. After
any error it is closed and opened anew, since only that finds the new primary. Nothing is prepared:
behind a pooler the next transaction may be another server process's.
"""

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rdq_runner.logs import say
from rdq_runner.sql import Functions

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 5.0

# A peer that went silent is noticed within half a minute.
_PARAMETERS: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "client_encoding": "UTF8",
}

# SQLSTATE classes of trouble that another try may not meet: connection, read-only server, rollback,
# resources, locks, operator, system; rights and functions that somebody has yet to give.
_OUTAGES: Final = frozenset({"08", "25", "28", "3F", "40", "42", "53", "55", "57", "58"})


def is_outage(error: psycopg.Error) -> bool:
    """Whether the database could not do it now, rather than cannot take what was sent."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] in _OUTAGES


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
        self.outages = 0
        # The processes of the server that serve us, and which session each is.
        self.backends: dict[int, str] = {}
        self._lock = threading.Lock()
        self._out: set[str] = set()

    @property
    def out(self) -> bool:
        """Whether some session has lost it."""
        return bool(self._out)

    def connect(self, **parameters: Any) -> psycopg.Connection:
        """Open a connection in autocommit; `parameters` override those of the connection string."""
        return psycopg.connect(
            **{**self._parameters, **parameters}, autocommit=True, prepare_threshold=None
        )

    async def connect_async(self) -> psycopg.AsyncConnection:
        """Open a connection in autocommit, for an event loop."""
        return await psycopg.AsyncConnection.connect(
            **self._parameters, autocommit=True, prepare_threshold=None
        )

    def lost(self, purpose: str, error: psycopg.Error) -> None:
        """Note that a session failed."""
        with self._lock:
            first = not self._out
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
        self._connection: psycopg.Connection | None = None
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
                self._database.lost(self.purpose, error)
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
            self._connection = self._database.connect()
            self._database.backends[self._connection.info.backend_pid] = self.purpose
            self._opened(Functions(self._connection))
        return self._connection

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._database.backends.pop(connection.info.backend_pid, None)
            connection.close()
