"""Which dead letters: the filter that lists, groups, redrive and purge share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import click

from rdq_runner.commands.command import collected
from rdq_runner.commands.session import Session
from rdq_runner.commands.times import Moment, past

_TEXTS: Final = {
    "queue": "Queue.",
    "handler": "Handler.",
    "error_type": "Type of the last error; * is any text, ? one character.",
    "error_class": "TRANSIENT, PERMANENT or AMBIGUOUS.",
    "dead_reason": "EXHAUSTED, PERMANENT, AMBIGUOUS, DEADLINE, VANISHED, UNROUTABLE, CANCELLED.",
    "fingerprint": "Group, as 'dlq groups' shows it.",
}
_TIMES: Final = {
    "since": "Died at or after: 2h, '3 days ago', 2026-01-31T18:00:00Z.",
    "until": "Died before: a time as --since takes it.",
}


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A filter as the functions of the schema take it.

    :param conditions: all but the time until when.
    """

    conditions: Mapping[str, object]
    until: datetime | None

    @property
    def arguments(self) -> dict[str, object]:
        """What to pass to a function; None is any."""
        return {**self.conditions, "until": self.until}

    def until_at_most(self, moment: datetime) -> "Filter":
        """Return the filter for what died before a moment."""
        return replace(self, until=min(self.until or moment, moment))


class GivenFilter:
    """A filter as it was typed, its times possibly relative."""

    def __init__(self, *, since: Moment | None, until: Moment | None, **texts: str | None) -> None:
        self._texts = texts
        self._since = since
        self._until = until

    def __bool__(self) -> bool:
        given = (self._since, self._until, *self._texts.values())
        return any(value is not None for value in given)

    def on(self, session: Session) -> Filter:
        """Return the filter with its times by the database's clock."""
        return Filter(
            conditions={**self._texts, "since": on_clock(self._since, session)},
            until=on_clock(self._until, session),
        )


def on_clock(moment: Moment | None, session: Session) -> datetime | None:
    """Return a time by the database's clock, which is asked only for a relative one."""
    if moment is None:
        return None
    return moment.at or moment.on(session.now)


filter_options = collected(
    "given",
    GivenFilter,
    *(
        click.option(f"--{name.replace('_', '-')}", metavar="TEXT", help=said)
        for name, said in _TEXTS.items()
    ),
    *(
        click.option(f"--{name}", type=past, metavar="TIME", help=said)
        for name, said in _TIMES.items()
    ),
)
"""Gives a command the options of a filter: it is called with a `GivenFilter`, named given."""
