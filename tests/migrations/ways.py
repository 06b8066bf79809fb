"""The three ways to install the schema, and a dump to compare what they made."""

import os
import subprocess
import sys
from collections.abc import Callable
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rdq_runner import schema
from rdq_runner.migrate import BOOKKEEPING, migrate
from tools.postgres import embedded_binaries


def with_runner(dsn: str) -> None:
    """As ``rdq-runner migrate`` does it."""
    migrate(dsn)


def with_yoyo(dsn: str) -> None:
    """With yoyo's own command, after the one statement that it cannot do itself."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create schema if not exists {BOOKKEEPING}")
    arguments = urlencode({**conninfo_to_dict(dsn), "schema": BOOKKEEPING})
    uri = f"postgresql+psycopg:///?{arguments}"
    options = ("--batch", "--no-config-file", "--database", uri)
    _run(sys.executable, "-m", "yoyo", "apply", *options, str(schema.MIGRATIONS))


def with_psql(dsn: str) -> None:
    """With nothing but psql."""
    _run(_binary("psql"), "-X", "-q", "-f", str(schema.SQL / "install.sql"), dsn)


WAYS: tuple[Callable[[str], None], ...] = (with_runner, with_yoyo, with_psql)


def dump(dsn: str) -> str:
    """Return the definition of everything in the schema rdq, owners left out."""
    lines = _run(_binary("pg_dump"), "--schema-only", "--no-owner", "-n", "rdq", dsn).splitlines()
    # A random word in each dump guards psql against what the dump may contain.
    return "\n".join(line for line in lines if not line.startswith(("\\restrict", "\\unrestrict")))


def _binary(name: str) -> str:
    """Find a client that is not older than any server: the wheel's."""
    binaries = embedded_binaries()
    assert binaries is not None
    return str(binaries / name)


def _run(*command: str) -> str:
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert result.returncode == 0, result.stderr
    return result.stdout
