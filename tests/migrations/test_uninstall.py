"""Out of a database and into it again; and an upgrade that has nothing to do is in nobody's way."""

import subprocess
import sys

import psycopg
import pytest

from rdq_runner.migrate import migrate
from rdq_runner.uninstall import holdings, uninstall


@pytest.fixture
def installed(bare: str) -> str:
    migrate(bare)
    return bare


def connect(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True)


def command(dsn: str, *arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rdq_runner", *arguments, "--dsn", dsn],
        input=answer,
        capture_output=True,
        text=True,
    )


def test_a_schema_that_somebody_dropped_is_installed_anew(installed: str) -> None:
    with connect(installed) as db:
        db.execute("drop schema rdq cascade")
    lines: list[str] = []
    assert migrate(installed, report=lines.append).version_before is None
    assert lines[0] == "the schema rdq is gone: it is installed anew"
    with connect(installed) as db:
        db.execute("select rdq.create_queue('q')")


def test_uninstall_says_what_is_lost_and_asks(installed: str) -> None:
    with connect(installed) as db:
        db.execute("select rdq.create_queue('q')")
        db.execute("select rdq.submit('q', 'h', 'x'::text) from generate_series(1, 3)")
        db.execute("select rdq.submit('q', 'h', 'x'::text, error => '{\"class\": \"PERMANENT\"}')")
    refused = command(installed, "uninstall", answer="n\n")
    assert refused.returncode == 5
    assert "3 PENDING, 1 DEAD" in refused.stdout
    assert holdings(installed)
    done = command(installed, "uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert holdings(installed) is None
    again = command(installed, "uninstall", "--yes")
    assert (again.returncode, again.stdout) == (0, "the schema rdq is not installed here\n")
    assert migrate(installed).version_before is None


@pytest.mark.parametrize(
    "built",
    [
        "create view others.mine as select queue from rdq.tasks",
        "create materialized view others.mine as select queue from rdq.tasks",
        "create table others.mine (id uuid default rdq.uuid_v7())",
        "create table others.mine (id uuid references rdq.task)",
        "create table others.mine (task rdq.task)",
        "create table others.mine () inherits (rdq.task)",
        "create table others.mine (id uuid check (id <> rdq.uuid_v7()))",
        "create function others.mine(rdq.task) returns integer language sql return 1",
        "create function others.mine() returns uuid language sql return rdq.uuid_v7()",
        "create table others.mine (id uuid); create trigger stamp before delete on others.mine"
        " execute function rdq._refuse_audit_change()",
        "create table others.mine (id uuid); alter table others.mine enable row level security;"
        " create policy own on others.mine using (id = rdq.uuid_v7())",
        "create domain others.mine as text check (rdq._is_name(value))",
    ],
)
def test_uninstall_takes_nothing_of_others_along(installed: str, built: str) -> None:
    with connect(installed) as db:
        db.execute("create schema others")
        db.execute(built.encode())
    with pytest.raises(psycopg.Error, match=r"depend on the schema rdq: .*mine.*first"):
        uninstall(installed)
    assert holdings(installed)
    with connect(installed) as db:
        db.execute("drop schema others cascade")
    uninstall(installed)
    assert holdings(installed) is None


def test_uninstall_names_who_is_in_the_way(installed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdq_runner.uninstall.LOCK_SECONDS", 0.1)
    with psycopg.connect(installed) as reader:
        reader.execute("select from rdq.queues")
        holder = f"process {reader.info.backend_pid} of role .*; nothing was deleted"
        with pytest.raises(psycopg.errors.LockNotAvailable, match=holder):
            uninstall(installed)
    uninstall(installed)


def test_an_upgrade_with_nothing_to_do_does_not_wait_for_who_has_read_a_view(
    installed: str,
) -> None:
    with psycopg.connect(installed) as reader:
        reader.execute("select * from rdq.tasks")
        lines: list[str] = []
        migrate(installed, lock_timeout_seconds=0.1, report=lines.append)
        assert lines == ["the functions are those of this package"]


@pytest.mark.parametrize(
    "damage",
    [
        "drop function rdq.complete(uuid, uuid)",
        "create or replace function rdq.version() returns text language sql return '0.2.0.dev0 '",
        "drop view rdq.endpoints",
    ],
)
def test_what_was_changed_by_hand_is_loaded_again(installed: str, damage: str) -> None:
    with connect(installed) as db:
        db.execute(damage.encode())
    lines: list[str] = []
    migrate(installed, report=lines.append)
    assert lines == ["loading the functions"]


def test_functions_are_loaded_again_when_that_is_asked_for(installed: str) -> None:
    done = command(installed, "migrate", "--reload")
    assert done.returncode == 0
    assert "loading the functions" in done.stdout


def test_an_upgrade_waits_for_who_grants_and_the_other_way_round(installed: str) -> None:
    # https://github.com/timescale/timescaledb/issues/2165
    with psycopg.connect(installed) as granting:
        granting.execute("select rdq._take_turn('access', 'who may do what')")
        with pytest.raises(Exception, match="kept a lock on the schema"):
            migrate(installed, lock_timeout_seconds=0.1, reload=True)
    migrate(installed, reload=True)


def test_what_the_files_mean_does_not_depend_on_a_setting(
    server: psycopg.Connection, bare: str
) -> None:
    # https://github.com/graphile/graphile-engine/issues/193
    with connect(bare) as db:
        name = db.info.dbname
    server.execute(f"alter database {name} set standard_conforming_strings = off".encode())
    migrate(bare)
    query = "select 'a_b' like rdq._like('a_b'), 'axb' like rdq._like('a_b')"
    with connect(bare) as db:
        assert db.execute("show standard_conforming_strings").fetchone() == ("off",)
        assert db.execute(query.encode()).fetchone() == (True, False)
