"""What the schema knows of queues and endpoints: every SQL text of ``rdq-runner apply``."""

import json
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from rdq_runner import locks
from rdq_runner.storable import Json

# Columns of rdq.queues that say what a queue is or does, and not how it is set.
_NO_SETTINGS: Final = frozenset({"queue", "paused_at", "pause_reason", "created_at"})
_ENDPOINT_KEY: Final = frozenset({"queue", "handler"})

Row = dict[str, Json]


class Definitions:
    """Reads and changes queues and endpoints, in the transaction of the caller.

    Every method raises `psycopg.Error`; refusals of rdq have an SQLSTATE of class RD.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def take_turn(self, seconds: float) -> None:
        """Wait for others that apply a file, and hold the turn until our transaction ends.

        :raises psycopg.errors.LockNotAvailable: another session kept it for so long.
        """
        try:
            locks.take_turn(self._connection, "rdq-runner apply", seconds, in_transaction=True)
        except psycopg.errors.LockNotAvailable as error:
            raise psycopg.errors.LockNotAvailable(
                f"another rdq-runner apply has held its lock for {seconds:g} s: {error}; nothing"
                " was changed. Try again when it has ended, or, if it is something else, end it"
                " with pg_terminate_backend"
            ) from error

    def setting_names(self) -> list[str]:
        """Return the settings that a queue has: those that the view shows."""
        rows = self._connection.execute(
            """
            select a.attname
            from pg_attribute a
            where a.attrelid = 'rdq.queues'::regclass and a.attnum > 0 and not a.attisdropped
            order by a.attnum
            """
        )
        return [name for (name,) in rows if name not in _NO_SETTINGS]

    def endpoint_names(self) -> list[str]:
        """Return what can be said of an endpoint: the parameters of the function, but the first."""
        rows = self._connection.execute(
            """
            select unnest(p.proargnames)
            from pg_proc p
            where p.pronamespace = 'rdq'::regnamespace and p.proname = 'set_endpoint'
            """
        )
        return [name for (name,) in rows if name not in _ENDPOINT_KEY]

    def queue_names(self) -> set[str]:
        """Return the queues that there are."""
        return {name for (name,) in self._connection.execute("select queue from rdq.queues")}

    def endpoint_keys(self) -> set[tuple[str, str]]:
        """Return queue and handler of the endpoints that there are."""
        rows = self._connection.execute("select queue, handler from rdq.endpoints")
        return {(queue, handler) for queue, handler in rows}

    def queue(self, queue: str) -> Row | None:
        """Return the settings of a queue."""
        row = self._connection.execute(
            "select to_json(q) from rdq.queues q where q.queue = %s", [queue]
        ).fetchone()
        return row and _without(row[0], _NO_SETTINGS)

    def endpoint(self, queue: str, handler: str) -> Row | None:
        """Return an endpoint, with the fields of its requests, which the view does not show."""
        row = self._connection.execute(
            """
            select to_json(c)
            from rdq.callbacks(queues => null) c
            where c.queue = %s and c.handler = %s
            """,
            [queue, handler],
        ).fetchone()
        return row and _without(row[0], _ENDPOINT_KEY)

    def set_queue(self, queue: str, settings: Mapping[str, object]) -> None:
        """Create a queue, or apply settings to it; None puts one back to its default."""
        self._connection.execute(
            "select rdq.create_queue(queue => %s, settings => %s)", [queue, Jsonb(dict(settings))]
        )

    def set_endpoint(self, queue: str, handler: str, settings: Mapping[str, object]) -> None:
        """Make a handler an endpoint; what is not given is as the function has it."""
        settings = {"url": None, **settings}  # the one that has no default there
        arguments = [
            sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder())
            for name in ("queue", "handler", *settings)
        ]
        self._connection.execute(
            sql.SQL("select rdq.set_endpoint({})").format(sql.SQL(", ").join(arguments)),
            # Texts of no type yet: the function's parameters have theirs.
            [queue, handler, *map(_text, settings.values())],
        )


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _without(row: Row, names: frozenset[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}
