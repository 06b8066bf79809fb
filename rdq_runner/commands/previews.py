"""What a change of many dead letters would touch, before it is asked for, and nothing else after.

The preview is bounded by its own moment: what dies while somebody reads it is not touched. A death
that was under way in that moment may still turn up; then the change is taken back, and shown anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from rdq_runner.commands.filters import Filter
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Row, Session
from rdq_runner.commands.times import absolute
from rdq_runner.visible import visible

GROUP_COLUMNS: Final = ("fingerprint", "count", "error_type", "handler", "sample_message")

TRIES: Final = 5


class MoreMatch(Exception):
    """More dead letters match than were shown; raised in a transaction, it takes that back."""


@dataclass(frozen=True)
class Preview:
    """What a filter matches.

    :param filters: bounded by the moment of the preview.
    :param row: what the database answered, for machines.
    """

    filters: Filter
    matched: int
    groups: Sequence[Row]
    row: Row
    warnings: Sequence[str] = ()

    def show(self, session: Session, output: Output, *, err: bool) -> None:
        """Write it for people."""
        until = self.filters.until
        bound = f" that died before {absolute(until)}" if until else ""
        click.echo(f"{counted(self.matched)}{bound}", err=err)
        if self.groups:
            output.show(self.groups, GROUP_COLUMNS, session.now, err=err)
        for warning in self.warnings:
            click.echo(f"{click.style('warning:', fg='yellow')} {visible(warning)}", err=err)


def counted(count: int) -> str:
    """Say how many dead letters."""
    return "1 dead letter" if count == 1 else f"{count} dead letters"


def bounded(filters: Filter, session: Session) -> Filter:
    """Return the filter for what has died until now."""
    return filters.until_at_most(session.look_at_clock())


def refuse_more(matches: int, shown: int) -> None:
    """Take back what the open transaction does if it is about more than was shown.

    :raises MoreMatch: it is.
    """
    if matches > shown:
        raise MoreMatch
