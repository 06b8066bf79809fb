"""A command's session with the database."""

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

import click
import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.datetime import IntervalBinaryLoader, TimestamptzBinaryLoader

from rdq_runner import conninfo
from rdq_runner.claims import SchemaError, check_schema
from rdq_runner.commands import statements
from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.literals import pasteable
from rdq_runner.commands.statements import Null, Statement
from rdq_runner.sql import Functions
from rdq_runner.visible import visible

T = TypeVar("T")

Row = dict[str, Any]
Connect = Callable[[], psycopg.Connection[Any]]

# The codes of rdq for what does not exist.
_NOT_FOUND: Final = frozenset({"RD001", "RD003"})


class Session:
    """Runs statements, each in a transaction of its own unless one is open.

    :param connect: opens a connection.
    :param show_sql: print each statement to stderr before it runs; the same again only once.
    """

    def __init__(self, connect: Connect, *, actor: str | None, show_sql: bool) -> None:
        self._connect = connect
        self._connection = connect()
        self._settings = statements.settings(actor)
        self._show_sql = show_sql
        self._clock: tuple[datetime, float] | None = None
        self._shown: set[str] = set()
        if show_sql and actor is not None:
            self._show(pasteable(statements.set_actor(actor)))

    @property
    def now(self) -> datetime:
        """What the database's clock shows: it is asked once, and then followed."""
        if self._clock is None:
            self._clock = (self.look_at_clock(), time.monotonic())
        asked, asked_at = self._clock
        return asked + timedelta(seconds=time.monotonic() - asked_at)

    def look_at_clock(self) -> datetime:
        """Return what the database's clock shows."""
        now: datetime = self.row(statements.NOW)["now"]
        return now

    def rows(self, statement: Statement) -> list[Row]:
        """Return what a statement gives.

        :raises psycopg.Error: it fails.
        """
        with self.transaction():
            return self._execute(statement)

    def row(self, statement: Statement) -> Row:
        """Return the one row that a statement gives."""
        [row] = self.rows(statement)
        return row

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all that runs in it, or none; inside of another it is a part of that."""
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            yield
            return
        with self._connection.transaction():
            self._connection.execute(self._settings.text, self._settings.arguments)
            yield

    def patiently(
        self,
        look: Callable[["Session"], T],
        interval_seconds: float,
        say_away: Callable[[str], None] = lambda why: None,
    ) -> T:
        """Return what a look gives; while the database is away, look again and again."""
        while True:
            try:
                if self._connection.closed:
                    self._connection = self._connect()
                return look(self)
            except psycopg.OperationalError as error:
                if not self._connection.closed:
                    raise
                say_away(visible(str(error).strip()))
                time.sleep(interval_seconds)

    def close(self) -> None:
        """End the session."""
        self._connection.close()

    def _execute(self, statement: Statement) -> list[Row]:
        if self._show_sql:
            self._show(pasteable(statement))
        arguments = {
            name: None if isinstance(value, Null) else value
            for name, value in statement.arguments.items()
        }
        cursor = self._connection.cursor(row_factory=dict_row, binary=True)
        return cursor.execute(statement.text, arguments).fetchall()

    def _show(self, text: str) -> None:
        if text not in self._shown:
            self._shown.add(text)
            click.echo(text, err=True)


@contextlib.contextmanager
def connected(dsn: str, *, actor: str | None, show_sql: bool) -> Iterator[Session]:
    """Give a session.

    :raises Failure: there is none to be had, or a statement in it fails.
    """
    try:
        session = Session(partial(_connect, dsn), actor=actor, show_sql=show_sql)
        with contextlib.closing(session):
            yield session
    except SchemaError as error:
        raise Failure(str(error)) from error
    except UnicodeEncodeError as error:
        raise Failure("an argument is not text in the encoding of this machine") from error
    except psycopg.Error as error:
        raise explained(error) from error


def _connect(dsn: str) -> psycopg.Connection[Any]:
    connection = conninfo.connect(dsn)
    try:
        check_schema(Functions(connection))
    except BaseException:
        connection.close()
        raise
    connection.adapters.register_loader("timestamptz", _Timestamps)
    connection.adapters.register_loader("interval", _Intervals)
    return connection


def explained(error: psycopg.Error) -> Failure:
    """Return what to say about an error: its message and its hint."""
    status = Exit.NOTHING if error.sqlstate in _NOT_FOUND else Exit.ERROR
    message = error.diag.message_primary or str(error) or type(error).__name__
    return Failure(message.strip(), status, error.diag.message_hint)


class _Timestamps(TimestamptzBinaryLoader):
    """Times in UTC; one beyond the years of Python is the last or the first that it has."""

    def load(self, data: Any) -> datetime:
        try:
            return super().load(data).astimezone(UTC)
        except (psycopg.DataError, OverflowError):
            edge = datetime.min if bytes(data)[0] & 0x80 else datetime.max
            return edge.replace(tzinfo=UTC)


class _Intervals(IntervalBinaryLoader):
    """Lengths of time; one beyond those of Python is the longest that it has."""

    def load(self, data: Any) -> timedelta:
        try:
            return super().load(data)
        except (psycopg.DataError, OverflowError):
            return timedelta.max
