"""Every SQL text that a runner sends: the functions of the schema ``rdq``, a method each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rdq_runner.storable import Json


@dataclass(frozen=True, slots=True)
class Claim:
    """A task that this process holds, by its token, until the lease ends."""

    task_id: UUID
    claim_token: UUID
    queue: str
    handler: str
    handler_version: str | None
    payload: bytes
    content_type: str
    headers: dict[str, str]
    attempt_no: int
    attempt_count: int
    redrive_count: int
    created_at: datetime
    give_up_at: datetime | None
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a task is after a report; `stale` if the claim was no longer the one that holds it."""

    task_id: UUID
    status: str | None
    next_attempt_at: datetime | None
    dead_reason: str | None
    stale: bool


class Functions:
    """The functions of the schema ``rdq``, on one connection in autocommit.

    Every method raises `psycopg.Error`; refusals of rdq have an SQLSTATE of class RD.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def version(self) -> str:
        """Return the version of the schema."""
        [(version,)] = self._connection.execute("select rdq.version()")
        return str(version)

    def claim(
        self,
        queues: Sequence[str] | None,
        runner: str,
        max_tasks: int,
        lease: timedelta | None,
        code_version: str | None,
    ) -> list[Claim]:
        """Take up to `max_tasks` that are due. None: all permitted queues; the queue's lease."""
        # A time beyond the years of Python is none for a person either.
        return (
            self._connection.cursor(row_factory=class_row(Claim))
            .execute(
                """
                select task_id, claim_token, queue, handler, handler_version, payload, content_type,
                  headers, attempt_no, attempt_count, redrive_count, created_at,
                  case when give_up_at < '10000-01-01 00:00Z' then give_up_at end as give_up_at,
                  extract(epoch from lease_expires_at - claimed_at)::float8 as lease_seconds
                from rdq.claim(
                  queues => %s::text[], runner => %s, max_tasks => %s, lease => %s::interval,
                  code_version => %s
                )
                """,
                [queues, runner, max_tasks, lease, code_version],
            )
            .fetchall()
        )

    def heartbeat(
        self, task_ids: list[UUID], claim_tokens: list[UUID], lease: timedelta | None
    ) -> set[UUID]:
        """Begin the leases anew; return the tasks that are still held."""
        rows = self._connection.execute(
            """
            select rdq.heartbeat(
              task_ids => %s::uuid[], claim_tokens => %s::uuid[], lease => %s::interval
            )
            """,
            [task_ids, claim_tokens, lease],
        )
        return {task_id for (task_id,) in rows}

    def report(
        self,
        task_ids: list[UUID],
        claim_tokens: list[UUID],
        failures: list[dict[str, Json] | None],
    ) -> list[Answer]:
        """Record how attempts ended, None for a success; the answers are in the same order."""
        return (
            self._connection.cursor(row_factory=class_row(Answer))
            .execute(
                """
                select task_id, status, dead_reason, stale,
                  case when next_attempt_at < '10000-01-01 00:00Z' then next_attempt_at end
                    as next_attempt_at
                from rdq.report(
                  task_ids => %s::uuid[], claim_tokens => %s::uuid[], failures => %s::jsonb[]
                )
                """,
                [task_ids, claim_tokens, [f and Jsonb(f) for f in failures]],
            )
            .fetchall()
        )

    def release(
        self, task_ids: list[UUID], claim_tokens: list[UUID], reason: str, delay: timedelta
    ) -> set[UUID]:
        """Hand tasks back, due again after `delay`; return those that were still held."""
        rows = self._connection.execute(
            """
            select rdq.release(
              task_ids => %s::uuid[], claim_tokens => %s::uuid[], reason => %s,
              delay => %s::interval
            )
            """,
            [task_ids, claim_tokens, reason, delay],
        )
        return {task_id for (task_id,) in rows}

    def seconds_until_due(self, queues: Sequence[str] | None) -> float:
        """Return when the next task is due, by the database's clock: in an hour at most."""
        [(seconds,)] = self._connection.execute(
            """
            select extract(epoch from least(
              rdq.next_due_at(queues => %s::text[]), clock_timestamp() + interval '1 hour'
            ) - clock_timestamp())::float8
            """,
            [queues],
        )
        return float(seconds)

    def tick(self) -> None:
        """Do one bounded step of all that is periodic, in all permitted queues."""
        self._connection.execute("select rdq.tick()")

    def listen(self) -> None:
        """Be told from now on when a task becomes due."""
        self._connection.execute("listen rdq_due")

    def due_queues(self, timeout: float) -> Iterator[str]:
        """Yield the queues in which something became due, for `timeout` seconds."""
        return (notice.payload for notice in self._connection.notifies(timeout=timeout))
