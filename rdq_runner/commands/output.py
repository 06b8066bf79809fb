"""Where the rows of a command go: a table for people, JSON or JSON lines for machines.

Results go to stdout; questions, previews and progress to stderr: a pipe has the result alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

import click

from rdq_runner.commands.session import Row
from rdq_runner.commands.tables import console, drawn, plain_lines, record
from rdq_runner.commands.values import document


class Format(Enum):
    """In which form a command answers."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Output:
    """Writes results.

    :param wide: every column, a line each, with whole texts and absolute times.
    """

    format: Format
    wide: bool = False

    @property
    def is_table(self) -> bool:
        """Whether people read it."""
        return self.format is Format.TABLE

    def table(self, rows: Iterable[Row], columns: Sequence[str], now: datetime) -> None:
        """Write rows.

        :param columns: what a table has that is not wide, the most important first, as far as the
            rows have it.
        """
        if self.format is Format.JSONL:
            for row in rows:
                click.echo(document(row))
            return
        listed = list(rows)
        if self.format is Format.JSON:
            click.echo(document(listed, indent=2))
        elif listed:
            self.show(listed, columns, now)
        else:
            click.echo("none", err=True)

    def record(self, row: Row, now: datetime) -> None:
        """Write one thing, a line for each of its columns."""
        if self.format is Format.JSON:
            click.echo(document(row, indent=2))
        elif self.format is Format.JSONL:
            click.echo(document(row))
        else:
            console().print(record(row, now), soft_wrap=True)

    def show(
        self, rows: Sequence[Row], columns: Sequence[str], now: datetime, *, err: bool = False
    ) -> None:
        """Write rows for people, whatever the format of the result is."""
        screen = console(err=err)
        known = [name for name in columns if name in rows[0]]
        if self.wide:
            for row in rows:
                screen.print(record(row, now), end="\n\n", soft_wrap=True)
        elif screen.is_terminal:
            screen.print(drawn(rows, known, now, screen.width))
        else:
            click.echo(plain_lines(rows, known, now), err=err)
