"""A database of the last release, with every kind of row, is upgraded and loses nothing."""

import gzip
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rdq_runner.migrate import migrate
from tests.migrations.ways import _binary, dump

RELEASE = Path(__file__).parent / "releases/0.1.0.sql.gz"
ROLE = "rdq_release_worker"

# What an upgrade changes, as docs/upgrading.md says: grants to roles that are gone do not stay.
GONE = {"access": {"rdq_release_gone"}}


@pytest.fixture
def old(server: psycopg.Connection[Any], bare: str) -> str:
    """A database as version 0.1.0 left it."""
    # It stays: databases of other tests may name it at the same time.
    with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        server.execute(f"create role {ROLE}".encode())
    subprocess.run(
        [_binary("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", bare],
        input=gzip.decompress(RELEASE.read_bytes()),
        check=True,
    )
    return bare


@pytest.fixture
def installed(new_database: Callable[[], str]) -> str:
    """A database in which this version was installed."""
    dsn = new_database()
    migrate(dsn)
    return dsn


def rows(dsn: str) -> dict[str, list[dict[str, Any]]]:
    """Return all that is stored, by table."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables = connection.execute(
            "select c.relname from pg_class c"
            " where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'r' order by 1"
        ).fetchall()
        return {
            table: [
                row
                for (row,) in connection.execute(
                    f"select to_jsonb(t) from rdq.{table} t order by t::text".encode()
                )
            ]
            for (table,) in tables
        }


def test_every_row_of_the_last_release_is_there_as_it_was(old: str) -> None:
    before = rows(old)
    assert all(before[table] for table in before), "the release has a row of every kind"
    report = migrate(old)
    assert (report.version_before, report.version_after) == ("0.1.0", "0.2.0.dev0")
    after = rows(old)
    for table, stored in before.items():
        kept = [row for row in stored if row.get("role") not in GONE.get(table, set())]
        columns = stored[0].keys()
        found = [{name: row[name] for name in columns} for row in after[table]]
        assert sorted(map(str, found)) == sorted(map(str, kept)), table


def test_an_upgrade_and_an_installation_give_the_same_schema(old: str, installed: str) -> None:
    migrate(old)
    with psycopg.connect(installed, autocommit=True) as db:
        for capability in ("worker", "viewer"):
            db.execute("select rdq.grant_access(%s, %s)", [ROLE, capability])
    assert dump(old) == dump(installed)
    # And there is nothing to do then.
    lines: list[str] = []
    migrate(old, report=lines.append)
    assert lines == ["the functions are those of this package"]


def test_work_goes_on_after_an_upgrade(old: str) -> None:
    migrate(old)
    with psycopg.connect(old, autocommit=True) as db:
        assert db.execute("select rdq.tick()").fetchone()
        [(problems,)] = db.execute("select problems from rdq.tick()").fetchall()
        assert problems is None
        held = db.execute(
            "select task_id, claim_token from rdq.lease where runner = 'holder'"
        ).fetchall()
        assert len(held) == 2
        for task_id, token in held:
            assert db.execute("select rdq.complete(%s, %s)", [task_id, token]).fetchone() == (True,)
        claimed = db.execute(
            "select task_id, claim_token from rdq.claim('{ab}', 'w', 100)"
        ).fetchall()
        assert len(claimed) >= 17
        [(dead,)] = db.execute(
            "select task_id from rdq.dead_letters where dead_reason = 'VANISHED'"
        ).fetchall()
        assert db.execute("select status from rdq.redrive(%s)", [dead]).fetchone() == ("PENDING",)
        # Whom it was granted may work, by name or by any other.
        db.execute("select rdq.submit('plain', 'h', 'x'::text)")
        db.execute(f"set role {ROLE}".encode())
        assert db.execute("select count(*) from rdq.claim('{plain}', 'w', 1)").fetchone() == (1,)


def test_a_view_of_somebody_elses_stops_an_upgrade_and_is_named(old: str) -> None:
    with psycopg.connect(old, autocommit=True) as db:
        db.execute("create schema others")
        db.execute("create view others.mine as select queue from rdq.tasks")
    with pytest.raises(psycopg.Error, match="mine"):
        migrate(old)
    with psycopg.connect(old, autocommit=True) as db:
        assert db.execute("select rdq.version()").fetchone() == ("0.1.0",)
        db.execute("drop view others.mine")
    assert migrate(old).version_after == "0.2.0.dev0"
