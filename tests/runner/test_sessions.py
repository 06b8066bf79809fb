"""What a session sends to the server, and how."""

from collections.abc import Iterator

import pytest

from rdq_runner.sessions import PREPARE_AFTER, Database, Session
from rdq_runner.sql import Functions


@pytest.fixture
def session(database: str) -> Iterator[Session]:
    client = Database(database, "test")
    session = Session(client, "test")
    yield session
    session.close()
    client.close()


def prepared(session: Session) -> int:
    """Return how many statements are prepared, after one was sent again and again."""
    with session.functions() as rdq:
        for _ in range(PREPARE_AFTER + 1):
            rdq.clock()
        connection = rdq._connection
        [(count,)] = connection.execute("select count(*) from pg_prepared_statements").fetchall()
    return int(count)


def test_statements_are_prepared_where_the_connection_is_direct(session: Session) -> None:
    assert prepared(session) == 1


def test_nothing_is_prepared_behind_a_pooler(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Functions, "is_direct", lambda self: False)
    assert prepared(session) == 0
