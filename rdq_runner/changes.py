"""What a configuration changes in the database: found out by doing it, shown, and kept or undone.

Of a queue or endpoint that it names the file says everything: what it leaves out has its default.
Others are left alone, and said. All is one transaction. What it would change is what it did change,
in a transaction that is rolled back: so the values are the database's own, and checked by it.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import psycopg

from rdq_runner.configuration import Configuration, ConfigurationError, Table, unknown
from rdq_runner.definitions import Definitions, Row
from rdq_runner.storable import Json

# A field of a request may be a secret; nobody but the runner needs to read it.
_HIDDEN: Final = "headers"


@dataclass(frozen=True)
class Change:
    """A queue or an endpoint that becomes another; there was none where `before` is None."""

    subject: str
    before: Row | None
    after: Row
    given: frozenset[str]

    def lines(self) -> list[str]:
        """Return the change for people: what is given of a new one, what differs of an old one."""
        if self.before is None:
            return [
                f"+ {self.subject}",
                *(f"    {n} = {_shown(n, v)}" for n, v in self.after.items() if n in self.given),
            ]
        return [
            f"~ {self.subject}",
            *(
                f"    {name}: {_shown(name, self.before.get(name))} -> {_shown(name, value)}"
                for name, value in self.after.items()
                if value != self.before.get(name)
            ),
        ]


@dataclass
class Changes:
    """What was changed, and what the file does not speak of."""

    made: list[Change] = field(default_factory=list)
    left_alone: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return all of it for people."""
        return [
            *(line for change in self.made for line in change.lines()),
            *(f"  {subject} is not in the file: left alone" for subject in self.left_alone),
        ]


def apply(
    connection: psycopg.Connection[object],
    configuration: Configuration,
    *,
    dry_run: bool = False,
    show: Callable[[str], object] = lambda line: None,
    wait_seconds: float = 60.0,
) -> Changes:
    """Make the queues and endpoints of the database those of the file; again, it changes nothing.

    :param connection: in autocommit.
    :param dry_run: find out what would change, and change nothing.
    :param show: is given each line of the changes, before they are kept.
    :param wait_seconds: how long to wait for another session that applies a file.
    :raises ConfigurationError: the database refuses something; nothing was changed.
    :raises psycopg.Error: it cannot be reached, has no such functions, or another session is in the
        way.
    """
    with connection.transaction() as transaction:
        application = _Application(connection, configuration)
        application.run(wait_seconds)
        if application.problems:
            raise ConfigurationError("\n".join(application.problems))
        for line in application.changes.lines():
            show(line)
        if dry_run:
            raise psycopg.Rollback(transaction)
    return application.changes


class _Application:
    def __init__(self, connection: psycopg.Connection[object], file: Configuration) -> None:
        self._connection = connection
        self._rdq = Definitions(connection)
        self._file = file
        self.changes = Changes()
        self.problems: list[str] = []

    def run(self, wait_seconds: float) -> None:
        rdq, file = self._rdq, self._file
        rdq.take_turn(wait_seconds)
        self.changes.left_alone = [
            *(f"queue {queue}" for queue in sorted(rdq.queue_names() - file.queues.keys())),
            *(f"endpoint {q} {h}" for q, h in sorted(rdq.endpoint_keys() - file.endpoints.keys())),
        ]
        names = rdq.setting_names()
        # Sorted, since every transaction that locks several does it in one order.
        for queue, table in sorted(file.queues.items()):
            settings = self._known(("queues", queue), table, names)
            do = partial(rdq.set_queue, queue, {**dict.fromkeys(names), **settings})
            self._set(("queues", queue), settings, do, partial(rdq.queue, queue))
        names = rdq.endpoint_names()
        for (queue, handler), table in sorted(file.endpoints.items()):
            place = ("endpoints", queue, handler)
            settings = self._known(place, table, names)
            do = partial(rdq.set_endpoint, queue, handler, settings)
            self._set(place, settings, do, partial(rdq.endpoint, queue, handler))

    def _known(self, keys: tuple[str, ...], table: Table, names: list[str]) -> Table:
        """Return what is known of a table, and note what is not."""
        for name in table.keys() - names:
            said = unknown(name, names, table=isinstance(table[name], dict))
            self.problems.append(self._file.error((*keys, name), said))
        return {name: value for name, value in table.items() if name in names}

    def _set(
        self,
        keys: tuple[str, ...],
        settings: Table,
        do: Callable[[], None],
        look: Callable[[], Row | None],
    ) -> None:
        before = look()
        try:
            with self._connection.transaction() as savepoint:
                do()
                after = look()
                if after == before:
                    # Not even the audit has a word of it.
                    raise psycopg.Rollback(savepoint)
        except psycopg.Error as error:
            self._complain(keys, settings, error)
            return
        if after is not None and after != before:
            kind, *names = keys
            subject = f"{kind.removesuffix('s')} {' '.join(names)}"
            self.changes.made.append(Change(subject, before, after, frozenset(settings)))

    def _complain(self, keys: tuple[str, ...], settings: Table, error: psycopg.Error) -> None:
        """Note a refusal at the key that it names; what is no refusal of a value is not ours."""
        message = error.diag.message_primary or ""
        state = error.sqlstate or ""
        if not state.startswith(("RD", "22")):
            raise error
        named = [
            name
            for name, value in settings.items()
            if re.search(rf"\b{re.escape(name)}\b", message) or f'"{value}"' in message
        ]
        if len(named) == 1:
            keys = (*keys, *named)
        hint = f" {error.diag.message_hint}" if error.diag.message_hint else ""
        self.problems.append(self._file.error(keys, f"{message}.{hint}"))


def _shown(name: str, value: Json) -> str:
    if name == _HIDDEN and isinstance(value, Mapping):
        return f"{', '.join(value) or 'none'} (values not shown)"
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
