"""A file, and the command on it."""

import subprocess
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

from tests.configuration.command import rdq_runner

Result = subprocess.CompletedProcess[str]


class Apply(Protocol):
    """Writes a file, and applies it with some options."""

    def __call__(self, text: str, *options: str, exits: int = 0) -> Result: ...


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rdq.toml"


@pytest.fixture
def apply(database: str, file: Path) -> Apply:
    def run(text: str, *options: str, exits: int = 0) -> Result:
        file.write_text(text, encoding="utf-8")
        done = rdq_runner("apply", "--config", file, *options, RDQ_DSN=database)
        assert done.returncode == exits, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


class Contents:
    """Everything in the database that an apply may change."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def __call__(self) -> list[list[Any]]:
        """Return all of it."""
        return [
            self._db.execute(
                f"select to_jsonb(t) from rdq.{table} t order by 1".encode()
            ).fetchall()
            for table in ("queue", "endpoint", "audit")
        ]

    def queue(self, name: str, *settings: str) -> tuple[Any, ...] | None:
        """Return settings of a queue, as text."""
        columns = ", ".join(f"{setting}::text" for setting in settings)
        return self._db.execute(
            f"select {columns} from rdq.queues where queue = %s".encode(), [name]
        ).fetchone()


@pytest.fixture
def contents(db: psycopg.Connection[Any]) -> Contents:
    return Contents(db)
