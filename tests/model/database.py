"""The database beside the model: its calls, what it shows, and time that passes."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from tests.model.model import Window

TIMES = {
    "due": ("due_at", "give_up_at"),
    "lease": ("claimed_at", "expires_at", "give_up_at"),
    "dead": ("dead_at",),
    "task": ("created_at", "run_at", "give_up_at"),
    "attempt": ("started_at", "finished_at", "late_at"),
    "low_water": ("due_from", "expires_from", "looked_at", "bottom_at"),
    "redrive_run": ("began_at", "finished_at", "next_due_at", "cursor_at"),
}

SEEN = """
select
  t.task_id, t.status, t.attempt_count::int, t.redrive_count, t.next_attempt_at,
  t.lease_expires_at, t.give_up_at, t.finished_at,
  (select coalesce(k.run_at, k.created_at) from rdq.task k where k.id = t.task_id), t.dead_reason,
  coalesce(
    array(
      select array[a.life::text, a.outcome, a.error_class, a.late_outcome]
      from rdq.attempt a
      where a.task_id = t.task_id
      order by a.attempt_no
    ), '{}'
  ) as attempts
from rdq.tasks t
"""


class Seen(NamedTuple):
    """A task as the database shows it."""

    task_id: UUID
    status: str
    attempt_count: int
    redrive_count: int
    due_at: datetime | None
    expires_at: datetime | None
    give_up_at: datetime | None
    ended_at: datetime | None
    first_start: datetime
    dead_reason: str | None
    attempts: Sequence[Sequence[str | None]]


class Claim(NamedTuple):
    """A task that was handed out, perhaps long ago."""

    task_id: UUID
    token: UUID


class Database:
    """A session that owns everything in its database."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.encode(), parameters).fetchall()

    def timed(self, query: str, *parameters: object) -> tuple[list[tuple[Any, ...]], Window]:
        """Return the rows of a call, and when it was made."""
        before = self.now()
        rows = self.rows(query, *parameters)
        return rows, Window(before, self.now())

    def refusal(self, query: str, *parameters: object) -> str | None:
        """Make a call that is to be refused; return its SQLSTATE."""
        try:
            self.rows(query, *parameters)
        except psycopg.Error as error:
            return error.sqlstate
        return None

    def now(self) -> datetime:
        [(now,)] = self.rows("select clock_timestamp()")
        assert isinstance(now, datetime)
        return now

    def seen(self) -> dict[UUID, Seen]:
        return {row[0]: Seen(*row) for row in self.rows(SEEN)}

    def configure(self, queue: str, settings: Mapping[str, object]) -> None:
        self.rows("select rdq.create_queue(%s, %s)", queue, Jsonb(dict(settings)))

    def begin(self) -> None:
        """Forget every queue and task (the audit cannot be), and roll the dice as the last time."""
        self.connection.execute("select setseed(0.5)")
        self.connection.execute("truncate rdq.dedupe, rdq.queue, rdq.redriven, rdq.redrive_passed")
        for table in TIMES:
            self.connection.execute(f"truncate rdq.{table}".encode())

    def shift(self, by: timedelta) -> None:
        """Let time pass: everything that is stored was so much earlier."""
        for table, columns in TIMES.items():
            moves = ", ".join(f"{column} = {column} - %(by)s" for column in columns)
            self.connection.execute(f"update rdq.{table} set {moves}".encode(), {"by": by})
