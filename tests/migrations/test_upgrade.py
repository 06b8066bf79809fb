"""Upgrading: all or nothing, whoever is in the way and whatever was left behind."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rdq_runner import migrate as migrate_module
from rdq_runner import schema
from rdq_runner.migrate import MigrationError, migrate
from tests.migrations.ways import dump
from tests.waiting import wait_until

Release = Callable[[str, str], None]
FIRST_STEP = "0001.tables"
IN_THIS_DATABASE = "database in (select oid from pg_database where datname = current_database())"
WAITING = f"select 1 from pg_locks where not granted and {IN_THIS_DATABASE}"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """Make `migrate` carry another release: this one with a file changed or added."""
    for folder in (schema.SQL, schema.MIGRATIONS):
        shutil.copytree(folder, tmp_path / folder.name)
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path / "migrations")

    def change(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    return change


@pytest.fixture
def installed(bare: str) -> str:
    migrate(bare)
    return bare


def execute(dsn: str, statement: str) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else None


def some_view(dsn: str) -> str:
    [[name]] = execute(
        dsn,
        "select min(oid::regclass::text) from pg_class"
        " where relkind = 'v' and relnamespace = 'rdq'::regnamespace",
    )
    return str(name)


def test_a_migration_says_what_it_did(bare: str) -> None:
    lines: list[str] = []
    first = migrate(bare, report=lines.append)
    assert first.steps[0] == FIRST_STEP
    assert first.functions > 0
    assert first.version_before is None
    assert f"applying step {FIRST_STEP}" in lines
    second = migrate(bare)
    assert second.steps == ()
    assert second.functions == first.functions
    assert second.version_before == second.version_after == first.version_after


def test_a_step_that_was_committed_but_not_recorded_is_run_again(installed: str) -> None:
    before = dump(installed)
    execute(installed, "insert into rdq.access values ('rdq_owner', 'viewer', '{*}')")
    execute(installed, "delete from rdq_migrations._yoyo_migration")
    assert migrate(installed).steps[0] == FIRST_STEP
    assert dump(installed) == before
    assert execute(installed, "select role from rdq.access") == [("rdq_owner",)]


def test_the_lock_of_a_killed_yoyo_is_removed(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "_YOYO_LOCK_SECONDS", 0.2)
    execute(installed, "insert into rdq_migrations.yoyo_lock values (1, now(), 4711)")
    lines: list[str] = []
    migrate(installed, report=lines.append)
    assert "removed the lock that the yoyo process 4711 left behind" in lines
    assert execute(installed, "select count(*) from rdq_migrations.yoyo_lock") == [(0,)]


def test_a_yoyo_that_still_runs_is_given_the_time_to_end(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "_YOYO_LOCK_SECONDS", 60.0)
    execute(installed, "insert into rdq_migrations.yoyo_lock values (1, now(), 4711)")
    lines: list[str] = []
    with ThreadPoolExecutor() as pool:
        migration = pool.submit(migrate, installed, report=lines.append)
        advisory = "select 1 from pg_locks where locktype = 'advisory'"
        wait_until(lambda: execute(installed, f"{advisory} and {IN_THIS_DATABASE}"))
        execute(installed, "delete from rdq_migrations.yoyo_lock")
        migration.result()
    assert not any("removed" in line for line in lines)


def test_of_two_migrations_at_once_one_does_the_work(bare: str) -> None:
    start = threading.Barrier(2)

    def one() -> tuple[str, ...]:
        start.wait()
        return migrate(bare).steps

    with ThreadPoolExecutor() as pool:
        first, second = sorted(f.result() for f in [pool.submit(one), pool.submit(one)])
    assert first == ()
    assert second[0] == FIRST_STEP


def test_a_migration_waits_for_another_one_only_so_long(bare: str) -> None:
    with psycopg.connect(bare) as other:
        other.execute("select pg_advisory_lock(hashtextextended('rdq_migrations', 0))")
        holder = f"another migration.* process {other.info.backend_pid} of role "
        with pytest.raises(MigrationError, match=holder):
            migrate(bare, wait_seconds=0.1)


def test_an_upgrade_behind_a_long_read_fails_fast_and_changes_nothing(
    installed: str, release: Release
) -> None:
    release("migrations/9999.new.sql", "create table if not exists rdq.new (id integer);")
    before = dump(installed)
    with psycopg.connect(installed) as reader:
        reader.execute(f"select from {some_view(installed)}".encode())
        # The reader reads on, so that who waited for its end would wait for ever.
        holder = f"another session.* process {reader.info.backend_pid} of role "
        with pytest.raises(MigrationError, match=holder):
            migrate(installed, lock_timeout_seconds=0.2)
        assert dump(installed) == before
    assert migrate(installed).steps == ("9999.new",)


def test_an_upgrade_that_fails_in_a_function_takes_its_steps_back(
    installed: str, release: Release
) -> None:
    release("migrations/9999.new.sql", "create table if not exists rdq.new (id integer);")
    release("sql/identity.sql", "create function rdq.broken() returns nonsense language sql")
    before = dump(installed)
    with pytest.raises(psycopg.Error) as raised:
        migrate(installed)
    assert raised.value.__notes__ == ["in sql/identity.sql"]
    assert dump(installed) == before
    recorded = execute(installed, "select migration_id from rdq_migrations._yoyo_migration")
    assert ("9999.new",) not in recorded


def test_a_yoyo_that_comes_during_an_upgrade_waits_for_its_end(installed: str) -> None:
    with psycopg.connect(installed) as reader, ThreadPoolExecutor() as pool:
        reader.execute(f"select from {some_view(installed)}".encode())
        migration = pool.submit(migrate, installed, 30, reload=True)
        wait_until(lambda: execute(installed, WAITING))
        with psycopg.connect(installed, autocommit=True) as yoyo:
            yoyo.execute("set lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                yoyo.execute("insert into rdq_migrations.yoyo_lock values (1, now(), 4711)")
        reader.rollback()
        migration.result()


def test_a_killed_migration_leaves_nothing_in_the_way(installed: str) -> None:
    call = f"from rdq_runner.migrate import migrate; migrate({installed!r}, 30, reload=True)"
    with psycopg.connect(installed) as reader:
        reader.execute(f"select from {some_view(installed)}".encode())
        with subprocess.Popen([sys.executable, "-c", call]) as killed:
            wait_until(lambda: execute(installed, WAITING))
            killed.kill()
    assert migrate(installed).steps == ()


def test_an_edited_step_is_reported_each_time(installed: str, release: Release) -> None:
    release(f"migrations/{FIRST_STEP}.sql", "-- nothing\n")
    lines: list[str] = []
    for _ in range(2):
        assert migrate(installed, report=lines.append).edited == (FIRST_STEP,)
    assert len([line for line in lines if "was edited after it was applied" in line]) == 2


def test_a_step_that_is_applied_again_counts_as_it_is_now(installed: str, release: Release) -> None:
    execute(installed, "delete from rdq_migrations._yoyo_migration")
    release(f"migrations/{FIRST_STEP}.sql", "-- nothing\n")
    assert FIRST_STEP in migrate(installed).steps
    assert migrate(installed).edited == ()


def test_a_schema_with_newer_steps_is_left_alone(
    installed: str, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = schema.SQL.with_name("migrations")
    release("migrations/9999.new.sql", "create table if not exists rdq.new (id integer);")
    migrate(installed)
    monkeypatch.setattr(schema, "MIGRATIONS", older)
    with pytest.raises(MigrationError, match=r"9999\.new.*upgrade rdq-runner"):
        migrate(installed)


def test_functions_of_a_newer_version_are_left_alone(installed: str, release: Release) -> None:
    [[definition]] = execute(installed, "select pg_get_functiondef('rdq.version()'::regprocedure)")
    [[version]] = execute(installed, "select rdq.version()")
    newer = definition.replace(version, "999.0.0")
    execute(installed, newer)
    with pytest.raises(MigrationError, match="upgrade rdq-runner"):
        migrate(installed)
    assert execute(installed, "select rdq.version()") == [("999.0.0",)]


def test_a_step_outside_of_transactions_is_refused(installed: str, release: Release) -> None:
    release("migrations/9999.new.sql", "-- transactional: false\ncreate table rdq.new ();")
    with pytest.raises(MigrationError, match="cannot be part of a transaction"):
        migrate(installed)


def test_a_user_without_a_name_can_migrate(installed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "")
    migrate(installed)
