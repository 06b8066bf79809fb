"""A queue without jitter and delays, and sessions in its database."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.model.invariants import assert_conserved
from tests.races.sessions import Session

SETTINGS = {"backoff_base": 0, "jitter": 0, "max_attempts": 1000, "vanish_limit": 1000}

OpenSession = Callable[[], Session]


@pytest.fixture
def open_session(
    db: psycopg.Connection[Any], connect: Callable[[], psycopg.Connection[Any]]
) -> Iterator[OpenSession]:
    """Open sessions in the database of the test, where the queue ``q`` is.

    At the end of the test the tickets are counted: whatever it did, none is lost or doubled.
    """
    db.execute("select rdq.create_queue('q', %s)", [Jsonb(SETTINGS)])
    sessions: list[Session] = []
    with ThreadPoolExecutor(max_workers=64) as threads:

        def open_one() -> Session:
            sessions.append(Session(connect(), db, threads))
            return sessions[-1]

        yield open_one
        for session in sessions:
            session.end_what_is_under_way()
    assert_conserved(db)


@pytest.fixture
def first(open_session: OpenSession) -> Session:
    """The session that moves first."""
    return open_session()


@pytest.fixture
def second(open_session: OpenSession) -> Session:
    """The session that comes upon what the first one does."""
    return open_session()
