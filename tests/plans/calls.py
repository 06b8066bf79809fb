"""The calls that producers and workers make all day, each with the number of pages it touches."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from tests.plans import pages

ENDINGS = (None, {"class": "TRANSIENT"}, None, {"class": "PERMANENT"}, None)
PAGES_FOR_ANY_CALL = 100
"""The queue, and entries of indexes that nobody has cleaned up yet."""
PAGES_FOR_A_ROW = 40
"""Ten descents, of at most four pages each: a row moves in ten indexes and tables at most."""


class Cost(NamedTuple):
    """What a call was, how many rows it returned, and how many pages it touched."""

    call: str
    rows: int
    pages: int

    @property
    def bound(self) -> int:
        """How many pages it may touch, however full the tables are."""
        return PAGES_FOR_ANY_CALL + PAGES_FOR_A_ROW * self.rows


class Caller:
    """One session, with the plans that it has cached."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def day(self, batch: int) -> Iterator[Cost]:
        """Make every call once, on as many tasks as the batch has; of these many must be ready."""
        claim = "select * from rdq.claim('{q}', 'measured', %s)"
        yield self._measure("claim", claim, batch)
        held = self._held()
        yield self._measure("heartbeat", "select * from rdq.heartbeat(%s, %s)", *held)
        failures = [e and Jsonb(e) for e in (ENDINGS * batch)[:batch]]
        report = "select * from rdq.report(%s, %s, %s::jsonb[])"
        yield self._measure("report", report, *held, failures)
        yield self._measure("late report", report, *held, failures)

        yield self._measure("second claim", claim, batch)
        yield self._measure("release", "select * from rdq.release(%s, %s)", *self._held())
        yield self._measure("third claim", claim, batch)
        ids, _ = self._held()
        self._connection.execute(
            "update rdq.lease set expires_at = clock_timestamp() where task_id = any (%s)", [ids]
        )
        yield self._measure("reclaim", "select * from rdq.reclaim(%s)", batch)

        yield self._measure("tick", "select * from rdq.tick()")
        yield self._measure("next_due_at", "select rdq.next_due_at('{q}')")
        yield self._measure("dead_letters", "select * from rdq.dead_letters('q')")

        submit = "select rdq.submit('q', 'h', 'payload'::text, dedupe_key => %s)"
        key = str(uuid4())
        yield self._measure("submit", submit, None)
        yield self._measure("submit with a key", submit, key)
        yield self._measure("submit that joins", submit, key)
        items = Jsonb([{"handler": "h", "payload": "payload"}] * batch)
        yield self._measure("submit_many", "select * from rdq.submit_many('q', %s)", items)

    def _measure(self, call: str, query: str, *parameters: object) -> Cost:
        cursor = psycopg.ClientCursor(self._connection)
        before = pages.so_far(self._connection)
        rows = cursor.execute(query.encode(), parameters).fetchall()
        return Cost(call, len(rows), pages.so_far(self._connection) - before)

    def _held(self) -> tuple[Sequence[UUID], Sequence[UUID]]:
        rows = self._connection.execute(
            "select task_id, claim_token from rdq.lease where runner = 'measured'"
        ).fetchall()
        return [row[0] for row in rows], [row[1] for row in rows]
