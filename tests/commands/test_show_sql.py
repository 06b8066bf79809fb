"""What --show-sql prints can be pasted into psql, for every command."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from rdq_runner.commands.literals import LIMIT, pasteable
from rdq_runner.commands.statements import NULL, Statement
from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.tree import ASKING
from tests.conftest import Connection
from tests.docs.test_examples import paste
from tools.template import drop

Scene = dict[str, object]

EDIT = ["--payload", "a\n\x1b[1m%s'\\", "--content-type", "text/plain", "--header", "a=b"]
# For each command, how to call it, and how it ends.
CALLS: dict[str, tuple[list[str], int]] = {
    "queue list": ([], 0),
    "queue show": (["payments"], 0),
    "queue create": (["new", "max_attempts=3", "backoff_base='10 seconds'"], 0),
    "queue alter": (["payments", "lease=5 minutes", "ladder=[1, 60]"], 0),
    "queue pause": (["payments", "--reason", "it's down"], 0),
    "queue resume": (["payments", "--actor", "o'hara"], 0),
    "queue drop": (["empty"], 0),
    "dlq list": (["--queue", "payments", "--error-type", "Time*", "--since", "2h"], 0),
    "dlq groups": (["--error-class", "PERMANENT", "--dead-reason", "PERMANENT"], 0),
    "dlq timeline": (["--bucket", "5m"], 0),
    "dlq show": (["{dead}"], 0),
    "dlq history": (["{dead}"], 0),
    "dlq redrive": (["{dead}", *EDIT, "--run-at", "in 2h", "--give-up-at", "3h"], 0),
    "dlq edit": (["{dead}", "--header", "a=b", "--yes"], 0),
    "dlq revert": (["{edited}", "--yes"], 0),
    "dlq purge": (["{dead}", "--reason", "why"], 0),
    "redrive list": (["--state", "PAUSED", "--state", "HALTED"], 0),
    "redrive show": (["{redrive}"], 0),
    "redrive watch": (["{redrive}"], 6),
    "redrive pause": (["{running}"], 0),
    "redrive resume": (["{redrive}", "--yes"], 0),
    "redrive cancel": (["{redrive}", "--reason", "why"], 0),
    "task show": (["{live}"], 0),
    "task cancel": (["{live}", "--reason", "why"], 0),
    "audit": (["--queue", "payments", "--since", "2h", "--who", "x", "--task", "{dead}"], 0),
    "top": (["--once"], 0),
}
MANY = {
    "dlq redrive": ["--queue", "payments", "--yes", "--halt-at", "never", "--spread", "10m"],
    "dlq purge": ["--all", "--yes", "--batch", "2"],
}


@pytest.fixture
def scene(dead: Dead, db: Connection, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """One of everything."""
    monkeypatch.setenv("VISUAL", "sed -i s/42/43/")
    db.execute("select rdq.create_queue('empty')")
    [first, edited, *_] = dead.letters(5)
    db.execute("select rdq.redrive(%s, 'x')", [edited])
    db.execute("select rdq.cancel(%s)", [edited])
    dead.letters(30, queue="mails")
    begin = "select redrive_id from rdq.redrive_where(queue => 'mails', per_second => 0.01)"
    [(paused,)] = db.execute(begin)
    db.execute("select rdq.pause_redrive(%s)", [paused])
    [(running,)] = db.execute(begin)
    [(live,)] = db.execute("select rdq.submit('payments', 'charge', 'x')")
    return {"dead": first, "edited": edited, "redrive": paused, "running": running, "live": live}


@pytest.fixture
def copy(scene: Scene, database: str, db: Connection, server: Connection) -> Iterator[str]:
    """A database as it is before the command."""
    db.close()
    source = conninfo_to_dict(database)["dbname"]
    name = f"rdq_test_{uuid4().hex}"
    server.execute(f"create database {name} template {source}".encode())
    yield make_conninfo(database, dbname=name)
    drop(server, name)


def sql_of(stderr: str) -> str:
    """Return the statements among what was said."""
    return "\n".join(re.findall(r"^(?:select|set) .*?;$", stderr, re.MULTILINE | re.DOTALL))


def test_there_is_a_call_for_every_command() -> None:
    assert set(CALLS) == {" ".join(path) for path in ASKING}


@pytest.mark.parametrize(
    ("command", "arguments", "exits"),
    [
        *((command, *call) for command, call in CALLS.items()),
        *((command, arguments, 0) for command, arguments in MANY.items()),
    ],
)
def test_what_is_shown_can_be_pasted_and_the_result_is_json(
    rdq: Rdq, scene: Scene, copy: str, command: str, arguments: list[str], exits: int
) -> None:
    words = [argument.format(**scene) for argument in arguments]
    done = rdq(*command.split(), *words, "--json", "--show-sql", exits=exits)
    json.loads(done.stdout)
    shown = sql_of(done.stderr)
    assert "rdq." in shown
    assert "\x1b" not in done.stderr
    # What the command began has another id there.
    shown = re.sub(r"select \* from rdq.redrive_status[^;]*;$", "", shown)
    paste(copy, shown)


def test_what_the_pasted_sql_does_is_what_the_command_does(
    rdq: Rdq, scene: Scene, copy: str, connect: Callable[[], Connection]
) -> None:
    text = "a\n\x1b[1m%s'\\\t\u202eü"
    shown = rdq("dlq", "redrive", scene["dead"], "--payload", text, "--show-sql").stderr
    paste(copy, sql_of(shown))
    for dsn in (copy, connect().info.dsn):
        with psycopg.connect(dsn) as session:
            [(payload,)] = session.execute(
                "select payload from rdq.task where id = %s", [scene["dead"]]
            )
        assert payload == text.encode()


def test_a_long_payload_is_named_instead_of_shown(rdq: Rdq, scene: Scene, copy: str) -> None:
    for content in (b"x" * (LIMIT + 1), b"\0\xff" * LIMIT):
        statement = Statement(
            "select rdq.submit('payments', 'charge', %(payload)s)",
            {"payload": content if b"\0" in content else content.decode()},
        )
        shown = pasteable(statement)
        assert len(shown) < 300
        value = content.hex() if b"\0" in content else content.decode()
        paste(copy, f"\\set payload {value}\n{shown.splitlines()[-1]}")
        with psycopg.connect(copy) as session:
            [(found,)] = session.execute(
                "select count(*) from rdq.task where payload = %s", [content]
            )
        assert found == 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        NULL,
        True,
        42,
        -0.25,
        1e-9,
        float("inf"),
        "it's",
        "back\\slash",
        "a\nb\t\x1b[31m\x9b\u2028'\\",
        b"\0\xff",
        UUID(int=7),
        datetime(2026, 1, 31, 18, 0, 0, 123456, tzinfo=UTC),
        timedelta(days=1, microseconds=1),
        Jsonb({"a": ["it's", 1, None]}),
        ["a'b", "c\x1b"],
    ],
    ids=repr,
)
def test_a_literal_is_the_value(db: Connection, value: object) -> None:
    types = {datetime: "timestamptz", timedelta: "interval", UUID: "uuid", Jsonb: "jsonb"}
    cast = "::" + types.get(type(value), "text[]" if isinstance(value, list) else "text")
    if isinstance(value, bytes | bool | int) or value is None:
        cast = ""
    if isinstance(value, float):
        cast = "::float8"
    shown = pasteable(Statement(f"select %(value)s{cast}", {"value": value}))
    assert all(character.isprintable() or character == "\n" for character in shown)
    [(found,)] = db.execute(shown.encode())
    expected = None if value is NULL else value.obj if isinstance(value, Jsonb) else value
    assert found == expected
