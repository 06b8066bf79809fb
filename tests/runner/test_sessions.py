"""What a session sends to the server, and how."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

from rdq_runner.sessions import PREPARE_AFTER, Database, Session
from rdq_runner.sql import Functions


@pytest.fixture
def client(database: str) -> Iterator[Database]:
    client = Database(database, "test")
    yield client
    client.close()


@pytest.fixture
def session(client: Database) -> Iterator[Session]:
    session = Session(client, "test")
    yield session
    session.close()


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


def use(session: Session) -> None:
    """Make a call that works."""
    with session.functions() as rdq:
        rdq.clock()


def lose(session: Session, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Make a call that lasts as long as `meanwhile` and then meets the end of its connection."""

    def call() -> None:
        with session.functions() as rdq:
            meanwhile()
            rdq._connection.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(psycopg.OperationalError):
        call()


def test_an_outage_is_said_once_though_a_session_finds_out_when_it_is_over(
    client: Database, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    def go_out() -> None:
        lose(session)
        use(session)

    caplog.set_level("INFO", "rdq_runner")
    once = ["database unavailable", "database available again"]
    other = Session(client, "other")
    lose(other, meanwhile=go_out)
    use(other)
    assert caplog.messages == once
    assert client.outages == 1
    lose(other)
    use(other)
    assert caplog.messages == once * 2
    other.close()


def test_an_outage_that_lasts_is_said_again_after_a_while(
    client: Database,
    session: Session,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(session)
    for _ in range(3):
        lose(session)
    assert caplog.messages == ["database unavailable"]
    monkeypatch.setattr(client._rarely, "_until", 0.0)
    for _ in range(3):
        lose(session)
    assert caplog.messages == ["database unavailable"] * 2
    assert client.outages == 1
