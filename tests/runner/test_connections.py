"""What connections depend on: not on what a database, a role or the environment has set."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rdq_runner import Handlers, Runner, Task
from rdq_runner.doctor import Unreachable, examine
from rdq_runner.migrate import migrate
from rdq_runner.sessions import Database, Session
from rdq_runner.sql import Functions
from tests.configuration.command import rdq_runner
from tests.conftest import Connect
from tests.runner.conftest import Queue, Run, Start
from tests.waiting import wait_until

SECRET = "Tr0ub4dor"

HOSTILE = {
    "intervalstyle": "sql_standard",
    "datestyle": "SQL, DMY",
    "extra_float_digits": "-10",
    "bytea_output": "escape",
    "timezone": "Asia/Kathmandu",
    "client_encoding": "LATIN1",
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "row_security": "off",
    "lc_messages": "C",
}


@pytest.fixture
def hostile(database: str, queue: Queue) -> Queue:
    """The queue, in a database whose every new session has other settings than the usual ones."""
    name = sql.Identifier(str(queue.db.info.dbname))
    for setting, value in HOSTILE.items():
        queue.db.execute(
            sql.SQL("alter database {} set {} = {}").format(name, sql.Identifier(setting), value)
        )
    return queue


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://u:{SECRET}@[::1/rdq",
        f"postgresql://u:{SECRET}/x@127.0.0.1/rdq",
        f"postgresql://u:x/{SECRET}@127.0.0.1/rdq",
        f"postgresql://u:1/{SECRET}@127.0.0.1/rdq",
        f"postgresql://u:x@{SECRET}@127.0.0.1/rdq",
        f"postgresql://u:%{SECRET}@127.0.0.1/rdq",
        f"host=127.0.0.1 password=x {SECRET}",
        f"host=127.0.0.1 {SECRET}=x",
        f"host=127.0.0.1 password='{SECRET}",
        f"host=127.0.0.1 port={SECRET}",
        f"host=127.0.0.1 connect_timeout={SECRET}",
    ],
)
def test_a_connection_string_that_is_misread_is_refused_and_not_repeated(dsn: str) -> None:
    for connect in (lambda: Runner(dsn, queues=["q"], handlers=Handlers()), lambda: migrate(dsn)):
        with pytest.raises(psycopg.ProgrammingError, match="not a connection string") as caught:
            connect()
        error: BaseException | None = caught.value
        while error:
            assert SECRET not in str(error)
            error = error.__cause__


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "host=@abstract",
        "host=a,b port=1,2",
        "postgresql://u@h/d?options=-c%20role%3Da@b",
        "postgresql://u%40server:p%2Fw@h:5432/d?connect_timeout=0",
        "dbname=at@home",
        "service=none",
    ],
)
def test_a_connection_string_that_is_unusual_is_taken(dsn: str) -> None:
    Database(dsn, "test").close()


def test_a_runner_reads_the_same_whatever_the_settings_of_its_database(
    hostile: Queue, start: Start, connect: Connect
) -> None:
    own, seen = Handlers(), list[Task]()

    @own.handler("see")
    def see(task: Task) -> None:
        seen.append(task)

    payload = b"\x00\xff \\ \xc3\xa9"
    with connect(client_encoding="UTF8") as db:
        db.execute("select rdq.set_endpoint('q', 'call', 'https://example.org', timeout => '90 s')")
        db.execute("select rdq.alter_queue('q', '{\"handler_timeout\": \"90 s\"}')")
        [(task_id,)] = db.execute(
            "select rdq.submit('q', 'see', %s::bytea, headers => %s, give_up_at => %s)",
            [payload, json.dumps({"who": "😀"}), "2100-02-01 00:00Z"],
        ).fetchall()
    runner = start(handlers=own)
    hostile.wait_for("SUCCEEDED", task_id)
    [task] = seen
    assert (task.payload, task.headers) == (payload, {"who": "😀"})
    assert task.give_up_at
    assert task.give_up_at.isoformat().startswith("2100-02-01T")
    assert runner.error is None
    with closing(Database(hostile.db.info.dsn, "test")) as database, database.connect() as open_:
        rdq = Functions(open_)
        [endpoint] = rdq.callbacks(["q"])
        assert endpoint.timeout.total_seconds() == 90
        assert rdq.policies(["q"])["q"].handler_timeout == 90
        [(moment,)] = hostile.db.execute("select extract(epoch from clock_timestamp())").fetchall()
        assert abs(rdq.clock() - float(moment)) < 5


@pytest.fixture
def ascii_database(server_dsn: str, server: psycopg.Connection[Any]) -> Iterator[str]:
    """A database that takes any bytes for text."""
    name = "rdq_test_sql_ascii"
    server.execute(f"drop database if exists {name}")
    server.execute(f"create database {name} encoding 'SQL_ASCII' locale 'C' template template0")
    dsn = make_conninfo(server_dsn, dbname=name)
    migrate(dsn)
    yield dsn
    server.execute(f"drop database {name} with (force)")


def test_a_database_without_an_encoding_is_read_as_utf_8(ascii_database: str) -> None:
    own, seen = Handlers(), list[object]()

    @own.handler("see")
    def see(task: Task) -> None:
        seen.append(task.headers)

    with psycopg.connect(ascii_database, autocommit=True, client_encoding="UTF8") as db:
        task = submit_with_emoji(Queue(db))
        with Runner(ascii_database, queues=["q"], handlers=own, poll_interval=0.2):
            Queue(db).wait_for("SUCCEEDED", task)
    assert seen == [{"who": "😀"}]


def test_the_environment_does_not_choose_the_encoding(
    queue: Queue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = submit_with_emoji(queue, "ok")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    runner = run()
    queue.wait_for("SUCCEEDED", task)
    assert not runner.has_said("database unavailable")


def test_commands_read_and_write_utf_8_whatever_the_environment_says(
    queue: Queue, database: str
) -> None:
    error = json.dumps({"class": "PERMANENT", "type": "E", "message": "no 😀"}, ensure_ascii=False)
    queue.db.execute("select rdq.submit('q', 'ok', 'x'::text, error => %s)", [error])
    environment = {"RDQ_DSN": database, "PGCLIENTENCODING": "LATIN1", "PYTHONUTF8": "1"}
    for command in ("migrate", "dlq list", "dlq groups", "doctor"):
        done = rdq_runner(*command.split(), **environment)
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 8), done.stderr
        assert ("no 😀" in done.stdout) is command.startswith("dlq")


def submit_with_emoji(queue: Queue, handler: str = "see") -> UUID:
    """Submit a task whose headers are beyond Latin-1."""
    row = queue.db.execute(
        "select rdq.submit('q', %s, 'x'::text, headers => %s)",
        [handler, json.dumps({"who": "😀"}, ensure_ascii=False)],
    ).fetchone()
    assert row
    return UUID(str(row[0]))


LEVEL = "show transaction_isolation"


def test_the_isolation_is_read_committed_unless_a_handler_chooses(
    hostile: Queue, start: Start
) -> None:
    own, levels = Handlers(), dict[str, object]()

    @own.handler("plain", transactional=True)
    def plain(task: Task, connection: psycopg.Connection[Any]) -> None:
        levels["plain"] = connection.execute(LEVEL).fetchall()

    @own.handler("chosen", transactional=True)
    def chosen(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("set transaction isolation level repeatable read")
        levels["chosen"] = connection.execute(LEVEL).fetchall()

    @own.handler("async", transactional=True)
    async def coroutine(task: Task, connection: psycopg.AsyncConnection[Any]) -> None:
        levels["async"] = await (await connection.execute(LEVEL)).fetchall()

    start(handlers=own)
    hostile.wait_for("SUCCEEDED", *[hostile.submit(name) for name in ("plain", "chosen", "async")])
    # On the connection that is kept.
    hostile.wait_for("SUCCEEDED", hostile.submit("plain"))
    assert levels == {
        "plain": [("read committed",)],
        "chosen": [("repeatable read",)],
        "async": [("read committed",)],
    }
    database = Database(hostile.db.info.dsn, "test")
    with closing(database), closing(Session(database, "test")) as session:  # noqa: SIM117
        with session.functions() as rdq:
            assert rdq._connection.execute(LEVEL).fetchall() == [("read committed",)]


def test_a_conflict_with_others_is_no_outage_and_keeps_the_connection(
    database: str, queue: Queue, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = Database(database, "test")
    session = Session(client, "test")
    with closing(client), closing(session):
        with session.functions() as rdq:
            first = rdq._connection
        for _ in range(3):
            with pytest.raises(psycopg.errors.SerializationFailure), session.functions() as rdq:
                rdq._connection.execute("do $$ begin raise sqlstate '40001'; end $$")
        with session.functions() as rdq:
            assert rdq._connection is first
    assert client.outages == 0
    assert caplog.messages == ["others are in the way"]


def test_a_storm_of_announcements_is_no_storm_of_claims(
    queue: Queue,
    start: Start,
    connect: Connect,
    only_notices: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claimed, claim = list[int](), Functions.claim

    def count(rdq: Functions, *arguments: Any, **options: Any) -> Any:
        claims = claim(rdq, *arguments, **options)
        claimed.append(len(claims))
        return claims

    monkeypatch.setattr(Functions, "claim", count)
    start(**only_notices)
    wait_until(queue.listener)
    wait_until(lambda: claimed)
    ended = threading.Event()

    def storm(db: psycopg.Connection[Any]) -> None:
        while not ended.is_set():
            db.execute("notify rdq_due, 'q'")

    strangers = [threading.Thread(target=storm, args=[connect()]) for _ in range(2)]
    for stranger in strangers:
        stranger.start()
    try:
        wait_until(lambda: len(claimed) >= 8)
        before = len(claimed)
        task = queue.submit("ok")
        queue.wait_for("SUCCEEDED", task)
        ended.wait(2)
        # Two in two tenths of a second, once there were some in vain; a claim takes one or two ms.
        assert len(claimed) - before < 60
    finally:
        ended.set()
        for stranger in strangers:
            stranger.join()


def test_a_wrong_connection_string_is_a_finding_of_the_doctor() -> None:
    with pytest.raises(Unreachable) as caught:
        examine(f"postgresql://u:{SECRET}/x@127.0.0.1/rdq")
    assert SECRET not in caught.value.finding.finding + caught.value.finding.advice
