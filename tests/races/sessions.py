"""Sessions that play an interleaving: one keeps its transaction open while another one waits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.waiting import wait_until

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

PATIENCE_SECONDS = 20


class Claim(NamedTuple):
    """A task that a session holds."""

    task_id: UUID
    claim_token: UUID
    attempt_no: int
    attempt_count: int


class Call(Generic[Result]):
    """A statement of a session that is under way while the test goes on."""

    def __init__(self, future: Future[Result], pid: int, observer: psycopg.Connection[Any]) -> None:
        self._future = future
        self._pid = pid
        self._observer = observer

    def wait_until_blocked_by(self, other: "Session") -> None:
        """Wait until it waits for a lock that the other session has."""
        self.wait_until_blocked(other.pid)

    def wait_until_blocked(self, pid: int | None = None) -> None:
        """Wait until it waits for a lock: of this process, or of anyone."""

        def blocked() -> bool:
            assert not self._future.done(), f"it did not wait: {self._future}"
            return self._waits_for(pid)

        wait_until(blocked, PATIENCE_SECONDS)

    def wait_until_stopped(self) -> None:
        """Wait until it has come to where ``Session.stop_at`` lets it wait."""

        def stopped() -> bool:
            assert not self._future.done(), f"it did not stop: {self._future}"
            query = "select wait_event = 'PgSleep' from pg_stat_activity where pid = %s"
            row = self._observer.execute(query, [self._pid]).fetchone()
            return bool(row and row[0])

        wait_until(stopped, PATIENCE_SECONDS)

    def wait_until_blocked_or_done(self) -> None:
        """Wait until it waits for a lock of anyone, or has come to its end."""
        wait_until(lambda: self._future.done() or self._waits_for(None), PATIENCE_SECONDS)

    def result(self, seconds: float = PATIENCE_SECONDS) -> Result:
        """Wait for the end, and return what it returned or raise what it raised."""
        return self._future.result(seconds)

    def _waits_for(self, pid: int | None) -> bool:
        row = self._observer.execute("select pg_blocking_pids(%s)", [self._pid]).fetchone()
        assert row
        return pid in row[0] if pid else bool(row[0])


class Session:
    """One connection in autocommit, with a method for each function that the tests call."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        observer: psycopg.Connection[Any],
        threads: Executor,
    ) -> None:
        self.connection = connection
        self.pid = connection.info.backend_pid
        self._observer = observer
        self._threads = threads
        self._under_way: Future[Any] | None = None
        # A call that waits where it should not fails, and does not hang.
        self.execute(f"set lock_timeout = '{PATIENCE_SECONDS}s'")

    def transaction(self) -> AbstractContextManager[Any]:
        """Keep a transaction open; `psycopg.Rollback` raised within it ends it so."""
        return self.connection.transaction()

    def start(
        self,
        function: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Call[Result]:
        """Call one of this session's methods without waiting for it."""
        future = self._threads.submit(function, *args, **kwargs)
        self._under_way = future
        return Call(future, self.pid, self._observer)

    @contextmanager
    def stop_at(self, event: str, table: str) -> Iterator[None]:
        """Let others stop where they insert, update or delete in a table, while the block lasts.

        Not by a lock, since they would give up waiting for one.
        """
        self.execute("""
            create or replace function stop_here() returns trigger language plpgsql as $$
            begin
              while not pg_try_advisory_xact_lock_shared(42) loop
                perform pg_sleep(0.01);
              end loop;
              return null;
            end
            $$
            """)
        self.execute(f"""
            create trigger stop_here after {event} on {table}
            for each statement execute function stop_here()
            """)
        self.execute("select pg_advisory_lock(42)")
        try:
            yield
        finally:
            self.execute("select pg_advisory_unlock(42)")

    def end_what_is_under_way(self) -> None:
        """Let no call outlive a test that failed: its thread would be waited for."""
        if self._under_way and not self._under_way.done():
            self._observer.execute("select pg_terminate_backend(%s)", [self.pid])

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.encode(), parameters).fetchall()

    def value(self, query: str, *parameters: object) -> Any:
        [(value,)] = self.rows(query, *parameters)
        return value

    def execute(self, query: str, *parameters: object) -> None:
        self.connection.execute(query.encode(), parameters)

    # Producers

    def submit(
        self,
        key: str | None = None,
        *,
        task_id: UUID | None = None,
        queue: str = "q",
        handler: str = "h",
    ) -> UUID:
        query = "select rdq.submit(%s, %s, 'x'::text, dedupe_key => %s, task_id => %s)"
        return UUID(str(self.value(query, queue, handler, key, task_id)))

    def submit_many(self, tasks: Sequence[Mapping[str, object]]) -> list[UUID]:
        items = [{"handler": "h", "payload": "x", **task} for task in tasks]
        return [row[0] for row in self.rows("select rdq.submit_many('q', %s)", Jsonb(items))]

    # Workers

    def claim(self, max_tasks: int = 1, lease: str | None = None) -> list[Claim]:
        query = """
            select task_id, claim_token, attempt_no, attempt_count
            from rdq.claim('{q}', 'worker', %s, %s::interval)
            """
        return [Claim(*row) for row in self.rows(query, max_tasks, lease)]

    def claim_one(self) -> Claim:
        [claim] = self.claim()
        return claim

    def complete(self, claim: Claim) -> bool:
        return bool(self.value("select rdq.complete(%s, %s)", claim.task_id, claim.claim_token))

    def fail(self, claim: Claim, error_class: str = "TRANSIENT") -> str:
        """Return the state that the task is in now."""
        return str(
            self.value(
                "select status from rdq.fail(%s, %s, 'Error', error_class => %s)",
                claim.task_id,
                claim.claim_token,
                error_class,
            )
        )

    def report(
        self, claims: Sequence[Claim], failures: Sequence[Mapping[str, object] | None] = ()
    ) -> list[tuple[UUID, str, bool]]:
        """Report successes, or these failures; return for each the task, its state, and `stale`."""
        query = "select task_id, status, stale from rdq.report(%s, %s, %s::jsonb[])"
        told = [failure and Jsonb(failure) for failure in failures or [None] * len(claims)]
        return [(row[0], row[1], row[2]) for row in self.rows(query, *_arrays(claims), told)]

    def release(self, claims: Sequence[Claim]) -> set[UUID]:
        return {row[0] for row in self.rows("select rdq.release(%s, %s)", *_arrays(claims))}

    def heartbeat(self, claims: Sequence[Claim]) -> set[UUID]:
        return {row[0] for row in self.rows("select rdq.heartbeat(%s, %s)", *_arrays(claims))}

    def reclaim(self, max_tasks: int = 1000) -> list[tuple[UUID, str]]:
        rows = self.rows("select task_id, status from rdq.reclaim(%s)", max_tasks)
        return [(row[0], row[1]) for row in rows]

    def tick(self, max_tasks: int = 1000) -> tuple[int, int, int, int]:
        """Return how many were reclaimed, given up, redriven and purged."""
        [(reclaimed, given_up, redriven, purged, problems)] = self.rows(
            "select * from rdq.tick(%s)", max_tasks
        )
        assert problems is None
        return reclaimed, given_up, redriven, purged

    # Operators

    def cancel(self, task_id: UUID) -> None:
        self.execute("select rdq.cancel(%s)", task_id)

    def redrive(self, task_id: UUID) -> str:
        """Return the state that the task is in now."""
        return str(self.value("select status from rdq.redrive(%s)", task_id))

    def redrive_where(self, handler: str | None = None) -> tuple[int, int]:
        """Redrive the dead letters of the queue, or of one handler: how many were sent, skipped."""
        query = "select sent, skipped from rdq.redrive_where('q', %s)"
        [(sent, skipped)] = self.rows(query, handler)
        return sent, skipped

    def cancel_where(self, max_tasks: int = 10_000, status: str | None = None) -> int:
        """Cancel live tasks of the queue, or those in this state; return how many."""
        query = "select cancelled from rdq.cancel_where('q', status => %s, max_tasks => %s)"
        return int(self.value(query, status, max_tasks))

    def purge(self, task_id: UUID) -> None:
        self.execute("select rdq.purge(%s)", task_id)

    def purge_where(self, max_tasks: int = 10_000, dead_reason: str | None = None) -> int:
        """Purge dead letters of the queue, or those that died so; return how many."""
        query = "select purged from rdq.purge_where('q', dead_reason => %s, max_tasks => %s)"
        return int(self.value(query, dead_reason, max_tasks))

    def leave_a_redrive_to_the_sweeps(self, handler: str | None = None) -> None:
        """Begin a bulk redrive that has sent nothing yet, as one of very many tasks would be."""
        self.execute(
            """
            insert into rdq.redrive_run select r.*
            from rdq._new_redrive(
              rdq._filter('q', %s, null, null, null, null, null, null), 'test'
            ) n
            cross join lateral jsonb_populate_record(
              n, '{"phase": "REST", "canary": 0, "halt_min": 20}'
            ) r
            """,
            handler,
        )

    # What became of it

    def status(self, task_id: UUID) -> str | None:
        rows = self.rows("select status from rdq.tasks where task_id = %s", task_id)
        return str(rows[0][0]) if rows else None

    def history(self, task_id: UUID) -> list[tuple[int, str, str | None]]:
        """Return number, outcome and late outcome of every attempt."""
        query = "select attempt_no, outcome, late_outcome from rdq.history(%s)"
        return [(row[0], row[1], row[2]) for row in self.rows(query, task_id)]

    def outcomes(self, task_id: UUID) -> list[str]:
        return [outcome for _, outcome, _ in self.history(task_id)]

    # What time does

    def expire_leases(self) -> None:
        """Let every lease have ended now."""
        self.execute("update rdq.lease set expires_at = clock_timestamp()")

    def make_due(self) -> None:
        """Let every task that waits be due now."""
        self.execute("update rdq.due set due_at = least(due_at, clock_timestamp())")

    def bury(self, *task_ids: UUID) -> None:
        """Make dead letters of tasks that wait, by the attempts of a worker."""
        self.make_due()
        for claim in self.claim(10_000):
            if claim.task_id in task_ids:
                assert self.fail(claim, "PERMANENT") == "DEAD"
            else:
                self.release([claim])


@contextmanager
def refused(code: str) -> Iterator[None]:
    """Expect a refusal of rdq with this SQLSTATE."""
    with pytest.raises(psycopg.Error) as caught:
        yield
    assert caught.value.sqlstate == code, caught.value


def _arrays(claims: Sequence[Claim]) -> tuple[list[UUID], list[UUID]]:
    return [claim.task_id for claim in claims], [claim.claim_token for claim in claims]
