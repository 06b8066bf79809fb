"""Connections that come back: after a restart, a failover, a silence, a server that is read-only.

Each thread has a connection of its own, in autocommit, so none is ever idle in a transaction. After
an error it is closed and opened anew, since only that finds the new primary; but not after one that
says no more than that others were in the way. Statements are only prepared, and settings only made,
where the server process is ours: behind a pooler the next transaction may be another's.

Nothing that is read depends on the settings of a database or role: results are binary, and text is
UTF-8.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import IsolationLevel

from rdq_runner import conninfo
from rdq_runner.deadlines import Deadlines
from rdq_runner.logs import Rarely, say
from rdq_runner.recovery import Recovery
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
}

# SQLSTATE classes of trouble that another try may not meet: connection, read-only server, rollback,
# resources, locks, operator, system; rights and functions that somebody has yet to give; a prepared
# statement that is not there, or was prepared for what a function returned before an upgrade.
_OUTAGES: Final = frozenset(
    {"08", "0A", "25", "26", "28", "3F", "40", "42", "53", "55", "57", "58"}
)

# Of the transactions that are begun here, by handlers as well, unless these say another. Statements
# for themselves go by the default of their session.
_ISOLATION: Final = IsolationLevel.READ_COMMITTED

# A claim that was held up on its way.
_TOO_LATE: Final = "RD009"

# Other sessions were in the way: serialization_failure, deadlock_detected, lock_not_available.
_CONFLICTS: Final = frozenset({"40001", "40P01", "55P03"})

# Connection, read-only server, resources, operator; a call that was held up. Without an SQLSTATE
# there was no connection.
_ABSENCES: Final = ("08", "25006", "53", "57P", _TOO_LATE)


def is_conflict(error: psycopg.Error) -> bool:
    """Whether another try is all that it needs: the connection and the database are well."""
    return error.sqlstate in _CONFLICTS


def is_absence(error: psycopg.Error) -> bool:
    """Whether nobody who needs this database could do anything in it."""
    return is_outage(error) and (error.sqlstate or "08").startswith(_ABSENCES)


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
            **conninfo.parameters(dsn),
        }
        self._connect_seconds = _seconds(self._parameters["connect_timeout"])
        self.patience = PATIENCE_SECONDS
        self.outages = 0
        self.recovery = Recovery()
        # Called when a session has found the database again: the others need not wait any longer.
        self.returned: Callable[[], None] = lambda: None
        # The processes of the server that serve us, and which session each is.
        self.backends: dict[int, str] = {}
        self._lock = threading.Lock()
        self._out: set[str] = set()
        self._rarely = Rarely()
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
        connection.isolation_level = _ISOLATION
        return connection

    async def connect_async(self) -> AsyncConnection:
        """Open a connection in autocommit, for an event loop."""
        connection = await AsyncConnection.connect(
            **self._within(self.patience), autocommit=True, prepare_threshold=None
        )
        connection.watch = self._watch(self.patience)
        await connection.set_isolation_level(_ISOLATION)
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
            if is_absence(error) and seen == self.outages:
                self.recovery.lost()
            self.outages += first
            self._out.add(purpose)
        event = "database unavailable" if is_outage(error) else "database refuses"
        if self._rarely.allows(event, always=first):
            _say(event, purpose, error)

    def found(self, purpose: str, waited: float | None = None) -> None:
        """Note that a session works.

        :param waited: seconds, for an answer; None: the server was not asked.
        """
        with self._lock:
            was_out = purpose in self._out
            self._out.discard(purpose)
            last = was_out and not self._out
            if waited is not None:
                self.recovery.found(waited)
        if last:
            say(logging.INFO, "database available again", session=purpose)
        if was_out:
            self.returned()

    def hindered(self, purpose: str, error: psycopg.Error) -> None:
        """Note that others were in the way of a session; it tries again, and nothing is lost."""
        self.found(purpose, 0.0)
        event = "others are in the way"
        if self._rarely.allows(event):
            _say(event, purpose, error)


def _say(event: str, purpose: str, error: psycopg.Error) -> None:
    say(
        logging.WARNING,
        event,
        session=purpose,
        sqlstate=error.sqlstate,
        error_type=type(error).__name__,
        reason=next(iter(str(error).splitlines()), None),
    )


def _seconds(connect_timeout: object) -> int:
    """Return how long a connection may take to open; to libpq zero means for ever."""
    seconds = int(str(connect_timeout).strip() or 0)
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
        """Give the functions of the schema; most errors of theirs end the connection too."""
        began_at = time.monotonic()
        try:
            connection = self._connection_now()
            if connection.watch:
                connection.watch.waited = 0.0
            yield Functions(connection)
        except psycopg.Error as error:
            self._failures += 1
            if not is_conflict(error):
                self.close()
                if not self._quiet:
                    self._database.lost(self.purpose, error, self._outages)
            elif not self._quiet:
                self._database.hindered(self.purpose, error)
            raise
        self._failures = 0
        if not self._quiet:
            self._database.found(self.purpose, self._waited_since(began_at))

    def _waited_since(self, moment: float) -> float | None:
        """Return how long an answer took at most, None if there has been none."""
        watch = self._connection.watch if self._connection else None
        return watch.waited if watch and watch.answered_at > moment else None

    @property
    def pause(self) -> float:
        """Seconds to wait before the next try: longer with every failure in a row, and jittered."""
        # The exponent is bounded because 2.0**1024 overflows.
        longest = FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 16)
        return min(longest, LONGEST_PAUSE_SECONDS) * random.uniform(0.5, 1)

    def _connection_now(self) -> Connection:
        # What one session has lost, the others have probably lost too: they need not find out.
        if self._connection is None or self._outages != self._database.outages:
            self.close()
            self._outages = self._database.outages
            self._connection = self._database.connect(self.patience)
            self._database.backends[self._connection.info.backend_pid] = self.purpose
            rdq = Functions(self._connection)
            if rdq.is_direct():
                self._connection.prepare_threshold = PREPARE_AFTER
                rdq.read_committed()
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
