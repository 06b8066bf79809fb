"""Where an application lets rdq have a connection.

It gives one of two things:

- what opens one, such as ``pool.connection`` or ``lambda: psycopg.connect(dsn)``. It is called for
  each use; the end of the connection's ``with`` commits.
- a connection of its own: what is done there is part of the transaction that is open, and the
  application commits. In a transaction that a failure has aborted nothing can be done any more: let
  what may fail run in ``connection.transaction()``.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any

import psycopg

Source = psycopg.Connection[Any] | Callable[[], AbstractContextManager[psycopg.Connection[Any]]]
_AsyncOpened = AbstractAsyncContextManager[psycopg.AsyncConnection[Any]]
AsyncSource = psycopg.AsyncConnection[Any] | Callable[[], _AsyncOpened | Awaitable[_AsyncOpened]]


def check(source: object, kind: type) -> None:
    """Refuse what can be no source.

    :raises TypeError: it is neither a connection of that kind nor what could open one.
    """
    if not isinstance(source, kind) and not callable(source):
        raise TypeError(
            f"connection is a {type(source).__name__}: give a psycopg.{kind.__name__},"
            " or what opens one, such as pool.connection"
        )


@contextmanager
def opened(source: Source) -> Iterator[psycopg.Connection[Any]]:
    """Give the connection for a ``with`` block."""
    with _explained():
        if isinstance(source, psycopg.Connection):
            yield source
        else:
            with source() as connection:
                yield connection


@asynccontextmanager
async def opened_async(source: AsyncSource) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Give the connection for an ``async with`` block."""
    with _explained():
        if isinstance(source, psycopg.AsyncConnection):
            yield source
        else:
            opening = source()
            async with await opening if inspect.isawaitable(opening) else opening as connection:
                yield connection


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.InFailedSqlTransaction as error:
        error.add_note(
            "The failure had aborted the transaction in which it was to be handed over: let what"
            " may fail run in connection.transaction(), or give what opens another connection."
        )
        raise
