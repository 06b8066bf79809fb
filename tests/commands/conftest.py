"""The command line on a database of its own, in this process."""

import os
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from rdq_runner.cli import main
from tests.commands.dead import Dead
from tests.conftest import Connection


class Rdq(Protocol):
    """Runs a command, and checks how it ends."""

    def __call__(
        self, *arguments: object, exits: int = 0, stdin: str | bytes | None = None
    ) -> Result: ...


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("RDQ_", "FORCE_", "TTY_"))]:
        if name != "RDQ_TEST_DSN":
            monkeypatch.delenv(name)


@pytest.fixture
def rdq(database: str) -> Rdq:
    def run(*arguments: object, exits: int = 0, stdin: str | bytes | None = None) -> Result:
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(
            main, words, env={"RDQ_DSN": database, "PGTZ": "Asia/Tokyo"}, input=stdin
        )
        if result.exit_code != exits:
            raise AssertionError(f"{words} ended with {result.exit_code}: {result.output}")
        return result

    return run


@pytest.fixture
def dead(db: Connection) -> Dead:
    """A queue of dead letters."""
    return Dead(db)
