"""The database that tests start from: migrated once, copied for each test."""

import hashlib
from contextlib import suppress
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rdq_runner import schema
from rdq_runner.migrate import migrate

TEMPLATE = "rdq_template"
OWNER = "rdq_owner"
"""Owns the schema and is nobody special. A superuser acts as it: the role needs no password."""


def ensure_template(server_dsn: str) -> None:
    """Create the template, unless it is there and made from the files as they are now.

    May be called by several processes at once: the first one does it, the others wait for it.
    """
    contents = _fingerprint()
    with psycopg.connect(server_dsn, autocommit=True) as server:
        _execute(server, "select pg_advisory_lock(hashtextextended('rdq_template', 0))")
        if _comment(server) != contents:
            _create_template(server, server_dsn)
            _execute(server, "comment on database {template} is {comment}", comment=contents)
        # Until then leases that tests move into the past count as those of before its start.
        server.execute(
            "select pg_sleep(greatest(0, extract(epoch from"
            " pg_postmaster_start_time() + interval '15 seconds' - clock_timestamp())))"
        )


def clone(server: psycopg.Connection[Any], name: str) -> None:
    """Copy the template into a new database."""
    # Not "strategy file_copy": as fast by itself, but its checkpoints slow the tests beside it.
    _execute(server, "create database {name} template {template} owner {owner}", name=name)


def drop(server: psycopg.Connection[Any], name: str) -> None:
    """Drop a database, ending the sessions in it."""
    _execute(server, "drop database if exists {name} with (force)", name=name)


def acting_as_owner(dsn: str) -> str:
    """Return the connection string of a session with the owner's rights only."""
    return make_conninfo(dsn, options=f"-c role={OWNER}")


def _create_template(server: psycopg.Connection[Any], server_dsn: str) -> None:
    if not server.execute("select 1 from pg_roles where rolname = %s", [OWNER]).fetchone():
        _execute(server, "create role {owner}")
    drop(server, TEMPLATE)
    _execute(server, "create database {template} owner {owner} template template0")
    dsn = make_conninfo(server_dsn, dbname=TEMPLATE)
    with psycopg.connect(dsn, autocommit=True) as database:
        _execute(database, "create schema tap")
        _execute(database, "create extension pgtap schema tap")
        _execute(database, "grant usage on schema tap to public")
        with suppress(psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
            _execute(database, "create extension plpgsql_check schema tap")
    migrate(acting_as_owner(dsn))
    # A session in the template would get in the way of its copies.
    _execute(server, "alter database {template} allow_connections false")


def _fingerprint() -> str:
    """Hash the files that the template is made from."""
    files = sorted(
        path for folder in (schema.SQL, schema.MIGRATIONS) for path in folder.glob("*.*")
    )
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _comment(server: psycopg.Connection[Any]) -> str | None:
    row = server.execute(
        "select shobj_description(oid, 'pg_database') from pg_database where datname = %s",
        [TEMPLATE],
    ).fetchone()
    return row[0] if row else None


def _execute(
    connection: psycopg.Connection[Any],
    statement: LiteralString,
    name: str = TEMPLATE,
    comment: str = "",
) -> None:
    names = {"template": TEMPLATE, "owner": OWNER, "name": name}
    identifiers = {key: sql.Identifier(value) for key, value in names.items()}
    connection.execute(sql.SQL(statement).format(**identifiers, comment=comment))
