"""Handlers whose effects are committed together with the completion of their task, or not at all.

The completion is the last statement of the handler's transaction. If the lease was lost it changes
nothing, and everything is rolled back; if the commit fails the task is not completed either. So the
effects of a task in this database happen once, however often it is attempted.

Connections are kept for the next attempts, since most of what a new one costs is the server's: its
first calls of the functions of rdq. What a handler has set in its session is reset before that.
"""

import threading
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from rdq_runner.attempts import check_answer, outcome_of
from rdq_runner.handlers import Registration
from rdq_runner.leases import Lease
from rdq_runner.outcomes import Committed, Failure, Outcome, Release
from rdq_runner.overdue import Overdue, Run, TimeLimits
from rdq_runner.sessions import Database
from rdq_runner.silence import AsyncConnection, Connection, shut
from rdq_runner.sql import RESET, complete, complete_async

CANCEL_SECONDS: Final = 2.0

_LOST: Final = Release("the lease was lost: the transaction is rolled back")
_HELD: Final = Release("another session holds the task: the transaction is rolled back")


class Transactions:
    """Runs plain functions in transactions.

    :param most_idle: how many connections are kept.
    """

    def __init__(
        self, database: Database, limits: TimeLimits, overdue: Overdue, most_idle: int
    ) -> None:
        self._database = database
        self._limits = limits
        self._overdue = overdue
        self._most_idle = most_idle
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._running: set[Connection] = set()
        self._ended: set[Connection] = set()
        self._stopped = False

    def attempt(self, handler: Registration, lease: Lease, timeout: float | None) -> Outcome:
        """Run a handler to the end of its transaction."""
        try:
            connection = self._take()
        except psycopg.Error as error:
            return _failed(error, handler, lease)
        _excuse(connection, lease)
        run = Run(**lease.labels)

        def late() -> None:
            # In a thread, since it asks the server.
            threading.Thread(target=self._end, args=[connection], daemon=True).start()
            self._overdue.add(run)

        try:
            with self._limits.limit(lease, timeout, late):
                return _transact(connection, handler, lease)
        finally:
            self._overdue.end(run)
            self._give_back(connection)

    def stop(self) -> None:
        """End the transactions that run: whoever has their tasks next must not wait for them."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        self._forget()
        for connection in running:
            self._end(connection)

    def _take(self) -> Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                connection = self._database.connect()
                break
            _be_strict(connection)
            try:
                connection.execute(RESET)
                break
            except psycopg.Error:
                connection.close()
                self._forget()
        with self._lock:
            self._running.add(connection)
        return connection

    def _forget(self) -> None:
        """Close what is kept: it has waited through a restart of the server, or a silence, too."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            self._running.discard(connection)
            keep = (
                _is_sound(connection)
                and connection not in self._ended
                and not self._stopped
                and len(self._idle) < self._most_idle
            )
            self._ended.discard(connection)
            if keep:
                connection.row_factory = tuple_row
                self._idle.append(connection)
        if not keep:
            connection.close()

    def _end(self, connection: Connection) -> None:
        """End a connection that another thread is using: the server rolls back, its locks go.

        Without the cancellation it would see that its client is gone only after the statement that
        it executes.
        """
        with self._lock:
            if connection not in self._running:
                return
            self._ended.add(connection)
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=CANCEL_SECONDS)
        with self._lock:
            # Not closed meanwhile, so the descriptor is still its own.
            if connection in self._running:
                shut(connection)


class AsyncTransactions:
    """Runs coroutine functions in transactions, in one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[AsyncConnection] = []

    async def attempt(self, handler: Registration, lease: Lease) -> Outcome:
        """Run a handler to the end of its transaction."""
        try:
            connection = await self._take()
        except BaseException as error:
            return _failed(error, handler, lease)
        _excuse(connection, lease)
        outcome: Outcome = _LOST
        try:
            async with connection.transaction() as transaction:
                await cast(Awaitable[object], handler.function(lease.task, connection))
                try:
                    completed = await complete_async(connection, lease.claim)
                except psycopg.errors.LockNotAvailable:  # no failure of the handler
                    outcome = _HELD
                    raise psycopg.Rollback(transaction) from None
                if not completed:
                    raise psycopg.Rollback(transaction)
                outcome = Committed()
        except BaseException as error:
            outcome = _failed(error, handler, lease)
        if _is_sound(connection):
            connection.row_factory = tuple_row
            self._idle.append(connection)
        else:
            await connection.close()
        return outcome

    async def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            await self._idle.pop().close()

    async def _take(self) -> AsyncConnection:
        while self._idle:
            connection = self._idle.pop()
            _be_strict(connection)
            try:
                await connection.execute(RESET)
            except psycopg.Error:
                await connection.close()
                await self.close()
            else:
                return connection
        return await self._database.connect_async()


def _transact(connection: psycopg.Connection[Any], handler: Registration, lease: Lease) -> Outcome:
    outcome: Outcome = _LOST
    try:
        with connection.transaction() as transaction:
            check_answer(handler.function(lease.task, connection))
            try:
                completed = complete(connection, lease.claim)
            except psycopg.errors.LockNotAvailable:  # no failure of the handler
                outcome = _HELD
                raise psycopg.Rollback(transaction) from None
            if not completed:
                raise psycopg.Rollback(transaction)
            outcome = Committed()
    except BaseException as error:
        return _failed(error, handler, lease)
    return outcome


def _excuse(connection: Connection | AsyncConnection, lease: Lease) -> None:
    """Let statements take as long as they take, while the lease is kept.

    If it is lost the server is silent, or the transaction is rolled back anyway.
    """
    if connection.watch:
        connection.watch.excused = lambda: not lease.lost


def _be_strict(connection: Connection | AsyncConnection) -> None:
    if connection.watch:
        connection.watch.excused = None


def _is_sound(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    idle = TransactionStatus.IDLE
    return (
        not connection.closed
        and connection.autocommit
        and connection.info.transaction_status == idle
    )


def _failed(error: BaseException, handler: Registration, lease: Lease) -> Outcome:
    outcome = outcome_of(error, handler, lease.task)
    # Whatever was lost with the connection was rolled back. Had a commit been done whose answer did
    # not arrive, the claim would be gone, and this failure stale.
    if (
        isinstance(outcome, Failure)
        and outcome.error_class is None
        and issubclass(type(error), psycopg.OperationalError)
    ):
        return replace(outcome, error_class="TRANSIENT")
    return outcome
