"""Every SQL text that a runner sends: the functions of the schema ``rdq``, a method each."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import BaseRowFactory, args_row, class_row, scalar_row, tuple_row
from psycopg.types.json import Jsonb

from rdq_runner.policies import Policy
from rdq_runner.recovery import SILENT_SECONDS, Spare
from rdq_runner.rows import Answer, Claim, Endpoint, Finding, QueueStats, Tick

SUBMIT: Final = """
    select rdq.submit(
      queue => %(queue)s, handler => %(handler)s, payload => %(payload)s::bytea,
      headers => %(headers)s::jsonb, run_at => %(run_at)s::timestamptz,
      give_up_at => %(give_up_at)s::timestamptz, max_attempts => %(max_attempts)s::integer,
      dedupe_key => %(dedupe_key)s, handler_version => %(handler_version)s,
      error => %(error)s::jsonb, task_id => %(task_id)s::uuid, content_type => %(content_type)s
    )
    """
"""Of a producer, on a connection of its own; the same text for both kinds of connection."""

SUBMIT_MANY: Final = "select rdq.submit_many(queue => %(queue)s, tasks => %(tasks)s::text)"

COMPLETE: Final = "select rdq.complete(task_id => %s, claim_token => %s)"
"""Of a handler, in its own transaction."""

QUEUE_STATS: Final = """
    select s.queue, s.paused, s.due, s.scheduled, s.in_flight, s.expired, s.dead,
      coalesce(extract(epoch from s.oldest_due_age), 0)::float8 as oldest_due_age_seconds,
      coalesce(extract(epoch from s.oldest_dead_age), 0)::float8 as oldest_dead_age_seconds,
      (
        select count(*)
        from rdq.runners r
        where r.alive and (r.queues is null or s.queue = any (r.queues))
      ) as runners,
      extract(epoch from statement_timestamp() - s.counted_at)::float8 as stats_age_seconds,
      s.recount_due
    from rdq.recent_queue_stats() s
    """
"""Of a scrape: how the queues stand."""

OPEN_REDRIVES: Final = """
    select state, count(*)
    from rdq.redrives
    where state in ('RUNNING', 'PAUSED', 'HALTED')
    group by state
    """
"""Of a scrape: the bulk redrives that have not come to their end."""

SPARE: Final = f"""
    greatest(
      %s::interval,
      case when clock_timestamp() > to_timestamp(%s) + interval '{SILENT_SECONDS} seconds'
        then clock_timestamp() - to_timestamp(%s) end
    )
    """
"""Of a call that may take leases back; the arguments are those of a `Spare`."""

# As discard all does, but for the plans: those are what a connection is kept for.
RESET: Final = """
    set session authorization default; reset all; close all; unlisten *;
    select pg_catalog.pg_advisory_unlock_all(); discard sequences; discard temp
    """
"""Of a connection that another handler has used."""


class Functions:
    """The functions of the schema ``rdq``, on one connection in autocommit.

    Every method raises `psycopg.Error`; refusals of rdq have an SQLSTATE of class RD.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def _rows(
        self,
        query: LiteralString,
        arguments: Sequence[object] | None = None,
        row_factory: BaseRowFactory[Any] = tuple_row,
    ) -> list[Any]:
        # In binary: as text, a length of time depends on IntervalStyle, and a number on
        # extra_float_digits, by which a clock may be seconds off.
        cursor = self._connection.cursor(row_factory=row_factory, binary=True)
        return cursor.execute(query, arguments).fetchall()

    def version(self) -> str:
        """Return the version of the schema."""
        [(version,)] = self._rows("select rdq.version()")
        return str(version)

    def claim(
        self,
        queues: Sequence[str] | None,
        runner: str,
        max_tasks: int,
        lease: timedelta | None,
        code_version: str | None,
        not_after: float,
        spare: Spare,
    ) -> list[Claim]:
        """Take up to `max_tasks` that are due. None: all permitted queues; the queue's lease.

        :param not_after: by the database's clock, in seconds since 1970: from then on nobody waits
            for the answer.
        """
        # A time beyond the years of Python is none for a person either.
        return self._rows(
            f"""
            select task_id, claim_token, queue, handler, handler_version, payload, content_type,
              nullif(headers, '{{}}'), attempt_no, attempt_count, redrive_count, created_at,
              case when give_up_at < '10000-01-01 00:00Z' then give_up_at end,
              extract(epoch from lease_expires_at - claimed_at)::float8,
              extract(epoch from claimed_at - due_at)::float8
            from rdq.claim(
              queues => %b::text[], runner => %s, max_tasks => %s, lease => %s::interval,
              code_version => %s, not_after => to_timestamp(%s), spare => {SPARE}
            )
            """,
            [queues, runner, max_tasks, lease, code_version, not_after, *spare],
            args_row(Claim),
        )

    def callbacks(self, queues: Sequence[str] | None) -> list[Endpoint]:
        """Return the endpoints of the queues."""
        return self._rows(
            """
            select queue, handler, url, timeout, headers, secret, response_rules
            from rdq.callbacks(queues => %s::text[])
            """,
            [queues],
            class_row(Endpoint),
        )

    def policies(self, queues: Sequence[str] | None) -> dict[str, Policy]:
        """Return what a runner applies itself, by queue."""
        rows = self._rows(
            """
            select queue, extract(epoch from handler_timeout)::float8, on_version_mismatch
            from rdq.policies(queues => %s::text[])
            """,
            [queues],
        )
        return {queue: Policy(timeout, mismatch) for queue, timeout, mismatch in rows}

    def heartbeat(
        self, task_ids: list[UUID], claim_tokens: list[UUID], lease: timedelta | None
    ) -> set[UUID]:
        """Begin the leases anew; return the tasks that are still held."""
        rows = self._rows(
            """
            select rdq.heartbeat(
              task_ids => %b::uuid[], claim_tokens => %b::uuid[], lease => %s::interval
            )
            """,
            [task_ids, claim_tokens, lease],
        )
        return {task_id for (task_id,) in rows}

    def report(
        self,
        task_ids: list[UUID],
        claim_tokens: list[UUID],
        failures: list[str | None],
    ) -> list[Answer]:
        """Record how attempts ended; the answers are in the same order.

        :param failures: as JSON, None for a success.
        """
        return self._rows(
            """
            select status,
              case when next_attempt_at < '10000-01-01 00:00Z' then next_attempt_at end,
              dead_reason, stale, error_class,
              case when next_attempt_at < '10000-01-01 00:00Z'
                then extract(epoch from next_attempt_at - clock_timestamp())::float8 end
            from rdq.report(
              task_ids => %b::uuid[], claim_tokens => %b::uuid[], failures => %b::jsonb[]
            )
            """,
            # As text each quote of a failure is escaped: that takes twenty times as long. Nulls
            # alone would go as text, of which array_nulls says how it is read.
            [task_ids, claim_tokens, [Jsonb(f or "null", dumps=str) for f in failures]],
            args_row(Answer),
        )

    def release(
        self, task_ids: list[UUID], claim_tokens: list[UUID], reason: str, delay: timedelta
    ) -> set[UUID]:
        """Hand tasks back, due again after `delay`; return those that were still held."""
        rows = self._rows(
            """
            select rdq.release(
              task_ids => %b::uuid[], claim_tokens => %b::uuid[], reason => %s,
              delay => %s::interval
            )
            """,
            [task_ids, claim_tokens, reason, delay],
        )
        return {task_id for (task_id,) in rows}

    def seconds_until_due(self, queues: Sequence[str] | None) -> float:
        """Return when the next task is due, by the database's clock: in an hour at most."""
        [(seconds,)] = self._rows(
            """
            select extract(epoch from least(
              rdq.next_due_at(queues => %b::text[]), clock_timestamp() + interval '1 hour'
            ) - clock_timestamp())::float8
            """,
            [queues],
        )
        return float(seconds)

    def tick(self, max_tasks: int, spare: Spare) -> Tick:
        """Do one step of all that is periodic, in all permitted queues, each part so bounded."""
        tick: Tick
        [tick] = self._rows(
            f"""
            select reclaimed, given_up, redriven, purged, problems
            from rdq.tick(max_tasks => %s, spare => {SPARE})
            """,
            [max_tasks, *spare],
            class_row(Tick),
        )
        return tick

    def runner_seen(
        self,
        runner: str,
        host: str,
        version: str,
        code_version: str | None,
        queues: Sequence[str] | None,
        concurrency: int,
        in_flight: int,
        unreported: int,
    ) -> None:
        """Note that a runner lives."""
        self._connection.execute(
            """
            select rdq.runner_seen(
              runner => %s, host => %s, version => %s, code_version => %s, queues => %s::text[],
              concurrency => %s, in_flight => %s, unreported => %s
            )
            """,
            [runner, host, version, code_version, queues, concurrency, in_flight, unreported],
        )

    def runner_gone(self, runner: str) -> None:
        """Note that a runner has stopped."""
        self._connection.execute("select rdq.runner_gone(%s)", [runner])

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Bound statements: for one transaction, since behind a pooler the session is shared."""
        with self._connection.transaction():
            # Compiling takes 17 ms, and makes nothing here faster.
            self._connection.execute(
                "select set_config('statement_timeout', %s, true), set_config('jit', 'off', true)",
                [f"{seconds * 1000:.0f}ms"],
            )
            yield

    def recent_queue_stats(self) -> list[QueueStats]:
        """Return how things stand in each queue that the role may see."""
        return self._rows(QUEUE_STATS, row_factory=class_row(QueueStats))

    def refresh_queue_stats(self) -> None:
        """Count what `recent_queue_stats` shows, where that takes long and it is time to."""
        self._connection.execute("select rdq.refresh_queue_stats()")

    def open_redrives(self) -> dict[str, int]:
        """Return how many bulk redrives are in each state that is not the end."""
        return dict(self._rows(OPEN_REDRIVES))

    def doctor(self, deep: bool) -> list[Finding]:
        """Return what is wrong, the worst first; deep reads every task."""
        query = "select severity, subject, finding, advice from rdq.doctor(deep => %s)"
        return self._rows(query, [deep], class_row(Finding))

    def clock(self) -> float:
        """Return the database's clock, in seconds since 1970."""
        [(seconds,)] = self._rows("select extract(epoch from clock_timestamp())::float8")
        return float(seconds)

    def is_direct(self) -> bool:
        """Whether the server process that answers is the one that was connected to: no pooler."""
        [(pid,)] = self._rows("select pg_backend_pid()")
        return bool(pid == self._connection.info.backend_pid)

    def read_committed(self) -> None:
        """Have each statement see what others have committed, whatever the database's default."""
        self._connection.execute(
            "set session characteristics as transaction isolation level read committed"
        )

    def listen_to_probes(self) -> None:
        """Be told from now on of probes."""
        self._connection.execute("listen rdq_probe")

    def send_probe(self, token: str) -> None:
        """Tell all who listen to probes."""
        self._connection.execute("select pg_notify('rdq_probe', %s)", [token])

    def listen(self) -> None:
        """Be told from now on when a task becomes due or dead."""
        self._connection.execute("listen rdq_dead")
        self._connection.execute("listen rdq_due")

    def notices(self, timeout: float) -> Iterator[psycopg.Notify]:
        """Yield what the database tells, for `timeout` seconds."""
        return self._connection.notifies(timeout=timeout)


def complete(connection: psycopg.Connection[Any], claim: Claim) -> bool:
    """Complete a task in the transaction that is open; False if the claim was lost."""
    cursor = connection.cursor(row_factory=scalar_row)
    return bool(cursor.execute(COMPLETE, [claim.task_id, claim.claim_token]).fetchone())


async def complete_async(connection: psycopg.AsyncConnection[Any], claim: Claim) -> bool:
    """Complete a task in the transaction that is open; False if the claim was lost."""
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(COMPLETE, [claim.task_id, claim.claim_token])
    return bool(await cursor.fetchone())
