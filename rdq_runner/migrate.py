"""Installs the schema and upgrades it: the steps of migrations/, then the functions of sql/ again.

An upgrade is one transaction: the steps, the records that yoyo keeps of them and the functions are
there together or not at all, whatever kills the process. Plain ``yoyo apply`` commits every step by
itself; a database may see both.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from yoyo import read_migrations
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
from yoyo.connections import DatabaseURI
from yoyo.migrations import MigrationList, default_migration_table

from rdq_runner import conninfo, locks, schema

BOOKKEEPING = "rdq_migrations"
"""The schema of yoyo's tables and of ours about the steps."""

_ATTEMPTS = 4
"""So often an upgrade is tried that meets another session in the catalogue."""

_YOYO_LOCK_SECONDS = 5.0
"""How long a row in yoyo's lock table is taken for a ``yoyo apply`` that still runs."""

Report = Callable[[str], None]


class MigrationError(Exception):
    """The schema was not changed; the message says why, and what to do."""


@dataclass(frozen=True)
class MigrationReport:
    """What a migration did. Versions are those of ``rdq.version()``: None where there was none."""

    steps: tuple[str, ...]
    edited: tuple[str, ...]
    functions: int
    version_before: str | None
    version_after: str | None

    def __str__(self) -> str:
        steps = ", ".join(self.steps) or "none"
        version = f"{self.version_before or 'nothing'} -> {self.version_after}"
        return f"steps applied: {steps}; functions loaded: {self.functions}; version: {version}"


def migrate(
    dsn: str = "",
    lock_timeout_seconds: float = 5.0,
    wait_seconds: float = 60.0,
    report: Report = lambda line: None,
    reload: bool = False,
) -> MigrationReport:
    """Bring the schema of a database to the one that this package carries.

    :param dsn: a libpq connection string or URI; libpq's environment says what it leaves out.
    :param lock_timeout_seconds: how long a statement may wait for another session's lock.
    :param wait_seconds: how long to wait for another migration of the same database.
    :param report: is given a line about each thing as it is done.
    :param reload: load the functions also where they are those of this package. By default nothing
        is locked then, so that a session which has read a view is not in the way.
    :raises MigrationError: another session is in the way, or the schema is newer than this package.
    :raises psycopg.Error: the database cannot be reached, or refuses a statement.
    """
    migrations = read_migrations(str(schema.MIGRATIONS))
    backend = _Backend(dsn)
    with closing(backend.connection):
        _take_turn(backend, wait_seconds)
        backend.limit_waiting(lock_timeout_seconds)
        _prepare_bookkeeping(backend, report)
        try:
            return _try_to_upgrade(backend, migrations, report, reload)
        except psycopg.errors.LockNotAvailable as error:
            raise MigrationError(
                f"another session kept a lock on the schema for {lock_timeout_seconds:g} s:"
                f" {locks.schema_holders(backend.connection, lock_timeout_seconds)} ({error});"
                " nothing was changed. Try again when it has ended, or end it with"
                " pg_terminate_backend"
            ) from error


def _try_to_upgrade(
    backend: "_Backend", migrations: MigrationList, report: Report, reload: bool
) -> MigrationReport:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with backend.transaction():
                # A "yoyo apply" that comes now waits here until we are done: it begins with a row.
                backend.execute("lock table yoyo_lock in exclusive mode")
                return _upgrade(backend, migrations, report, reload)
        except psycopg.errors.InternalError_ as error:
            # PostgreSQL does not wait where two sessions change one row of its catalogue.
            if "concurrently updated" not in str(error):
                raise
            if attempt == _ATTEMPTS:
                raise MigrationError(
                    "another session goes on granting privileges on the schema, or changing its"
                    f" functions ({error}); nothing was changed: try again when it has ended"
                ) from error
            report("another session changed the schema at the same time: once more")
            time.sleep(attempt)
    raise AssertionError("the last attempt returns or raises")


class _Backend(PostgresqlPsycopgBackend):  # type: ignore[misc]
    """Yoyo on a single connection, so that its several transactions can be one."""

    def __init__(self, dsn: str) -> None:
        name = {"fallback_application_name": "rdq-runner migrate"}
        arguments = {**name, **conninfo.parameters(dsn)}
        nowhere = (None, None, None, None, None)  # all in the arguments
        uri = DatabaseURI("postgresql+psycopg", *nowhere, {**arguments, "schema": BOOKKEEPING})
        super().__init__(uri, default_migration_table)
        # What the files mean depends on it.
        self.connection.execute("set standard_conforming_strings = on")

    def limit_waiting(self, seconds: float) -> None:
        """Limit the wait for one lock. Zero would mean no limit: it becomes the shortest one."""
        timeout = f"{max(1, round(seconds * 1000))}ms"
        self.connection.execute("select set_config('lock_timeout', %s, false)", [timeout])

    def copy(self) -> "_Backend":
        return self

    def __exit__(self, *_: object) -> None:
        """Yoyo closes what it takes for a copy; it is the one connection, and stays open."""

    def get_log_data(self, *args: Any, **kwargs: Any) -> Any:
        """Yoyo notes the name of the system's user; in a container the user may have none."""
        try:
            return super().get_log_data(*args, **kwargs)
        except (KeyError, OSError):
            os.environ["LOGNAME"] = str(os.getuid())
            return super().get_log_data(*args, **kwargs)

    def value(self, query: str, *parameters: object) -> Any:
        """Return the first column of the first row, or None."""
        row = self.connection.execute(query, parameters).fetchone()
        return row[0] if row else None


def _take_turn(backend: _Backend, wait_seconds: float) -> None:
    """Wait for other migrations to end. The lock is the session's, and goes with the connection."""
    try:
        locks.take_turn(backend.connection, BOOKKEEPING, wait_seconds)
    except psycopg.errors.LockNotAvailable as error:
        raise MigrationError(
            f"another migration of this database has held its lock for {wait_seconds:g} s: {error};"
            " nothing was changed. Try again when it has ended, or, if it is no migration, end it"
            " with pg_terminate_backend"
        ) from error


def _prepare_bookkeeping(backend: _Backend, report: Report) -> None:
    # "if not exists" would ask for the right to create a schema even where it exists.
    if not backend.value("select to_regnamespace(%s)", BOOKKEEPING):
        backend.execute(f"create schema {BOOKKEEPING}")
    if not backend.value("select to_regclass(%s)", f"{BOOKKEEPING}.yoyo_lock"):
        backend.create_lock_table()
    _clear_stale_lock(backend, report)
    backend.ensure_internal_schema_updated()
    backend.execute("create table if not exists step (id text primary key, sha256 text not null)")
    backend.execute(
        "create table if not exists loaded (files text not null, objects text not null)"
    )
    if not backend.value("select to_regnamespace('rdq')") and backend.value(
        "select count(*) from _yoyo_migration"
    ):
        # Somebody dropped it: what is noted of it is void.
        backend.execute("delete from _yoyo_migration")
        backend.execute("delete from step")
        report("the schema rdq is gone: it is installed anew")


def _clear_stale_lock(backend: _Backend, report: Report) -> None:
    """Remove the row of a killed ``yoyo apply``. One that runs is given the time to end."""
    deadline = time.monotonic() + _YOYO_LOCK_SECONDS
    while pid := backend.value("select pid from yoyo_lock"):
        if time.monotonic() > deadline:
            backend.break_lock()
            report(f"removed the lock that the yoyo process {pid} left behind")
            return
        time.sleep(0.1)


def _upgrade(
    backend: _Backend, migrations: MigrationList, report: Report, reload: bool
) -> MigrationReport:
    _refuse_unknown_steps(backend, migrations)
    before = _version(backend)
    pending = backend.to_apply(migrations)
    edited = _edited_steps(backend, migrations, pending)
    for name in edited:
        report(f"warning: step {name} was edited after it was applied; the edit changes nothing")
    for step in pending:
        if not step.use_transactions:
            raise MigrationError(f"step {step.id} cannot be part of a transaction")
        report(f"applying step {step.id}")
        backend.apply_one(step)
    files = _files()
    loaded = backend.value("select (files, objects) from loaded")
    if reload or pending or loaded != (files, _objects(backend)):
        report("loading the functions")
        backend.run_post_apply(migrations)
        backend.execute("delete from loaded")
        backend.connection.execute("insert into loaded values (%s, %s)", [files, _objects(backend)])
    else:
        report("the functions are those of this package")
    after = _version(backend)
    if _ordinal(after) < _ordinal(before):
        raise MigrationError(
            f"the schema has version {before}, this package only {after}: upgrade rdq-runner"
        )
    functions = backend.value(
        "select count(*) from pg_proc where pronamespace = to_regnamespace('rdq')"
    )
    return MigrationReport(tuple(s.id for s in pending), edited, functions, before, after)


def _refuse_unknown_steps(backend: _Backend, migrations: MigrationList) -> None:
    """An older package's functions must not be loaded over tables that they do not know."""
    unknown = backend.value(
        "select string_agg(migration_id, ', ' order by migration_id) from _yoyo_migration"
        " where migration_id <> all (%s)",
        [step.id for step in migrations],
    )
    if unknown:
        raise MigrationError(
            f"the schema has steps that this package does not know ({unknown}): upgrade rdq-runner"
        )


def _edited_steps(
    backend: _Backend, migrations: MigrationList, pending: MigrationList
) -> tuple[str, ...]:
    """Name the applied steps that now hold something else. Yoyo knows a step by its name alone."""
    recorded = dict(backend.connection.execute("select id, sha256 from step").fetchall())
    for step in pending:
        recorded.pop(step.id, None)
    found = {s.id: hashlib.sha256(Path(s.path).read_bytes()).hexdigest() for s in migrations}
    backend.cursor().executemany(
        "insert into step values (%s, %s) on conflict (id) do update set sha256 = excluded.sha256",
        [item for item in found.items() if item[0] not in recorded],
    )
    return tuple(name for name in found if recorded.get(name, found[name]) != found[name])


def _files() -> str:
    """Hash what the functions are loaded from."""
    files = sorted(schema.SQL.glob("*.sql"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _objects(backend: _Backend) -> str | None:
    """Hash the functions and views that the schema has, whoever loaded them."""
    found: str | None = backend.value(
        """
        select md5(string_agg(o.definition, '' order by o.definition))
        from (
          select pg_get_functiondef(p.oid) as definition
          from pg_proc p
          where p.pronamespace = to_regnamespace('rdq')
          union all
          select c.oid::regclass || pg_get_viewdef(c.oid)
          from pg_class c
          where c.relnamespace = to_regnamespace('rdq') and c.relkind = 'v'
        ) o
        """
    )
    return found


def _version(backend: _Backend) -> str | None:
    if not backend.value("select to_regprocedure('rdq.version()')"):
        return None
    return str(backend.value("select rdq.version()"))


def _ordinal(version: str | None) -> tuple[tuple[int, ...], bool, int]:
    """Order versions: one that ends in .devN comes before the release of that number (PEP 440)."""
    release, dev, number = (version or "").partition(".dev")
    return tuple(map(int, re.findall(r"\d+", release))), not dev, int(number or 0)
