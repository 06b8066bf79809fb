"""Effects in the database are committed with the completion of their task, or not at all."""

import time
from typing import Any

import psycopg
import pytest

from rdq_runner import Task
from tests.runner.conftest import Hold, Queue, Start
from tests.runner.ordeals import registered
from tests.waiting import wait_until


def test_what_a_handler_did_is_rolled_back_when_its_lease_was_lost(
    queue: Queue, start: Start, hold: Hold
) -> None:
    queue.alter(lease="3 seconds", ladder=["1 hour"])
    queue.db.execute("create table public.trace (task_id uuid)")

    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("insert into public.trace values (%s)", [task.id])
        hold.began.touch()
        task.cancellation.wait(60)

    start(handlers=registered(act, transactional=True))
    task = queue.submit("act")
    hold.wait_until_begun()
    queue.take_back(task)
    wait_until(lambda: queue.history(task)[0].late_at)
    assert queue.history(task)[0].late_outcome == "RELEASED"
    assert queue.db.execute("select from trace").fetchall() == []
    assert queue.status(task) == "PENDING"


def test_a_commit_that_fails_does_not_complete_the_task(queue: Queue, start: Start) -> None:
    queue.alter(ladder=["1 hour"])
    queue.db.execute("create table public.parent (id int primary key)")
    queue.db.execute(
        "create table public.trace (id int references public.parent deferrable initially deferred)"
    )

    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("insert into public.trace values (1)")

    start(handlers=registered(act, transactional=True))
    task = queue.submit("act")
    queue.wait_for_outcomes("FAILED", task)
    assert queue.history(task)[0].error_type == "psycopg.errors.ForeignKeyViolation"
    assert queue.db.execute("select from trace").fetchall() == []


def test_a_lost_connection_of_a_transaction_is_transient(queue: Queue, start: Start) -> None:
    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        if task.attempt_no == 1:
            connection.execute("select pg_terminate_backend(pg_backend_pid())")

    start(handlers=registered(act, transactional=True))
    task = queue.submit("act")
    queue.wait_for("SUCCEEDED", task)
    first, _ = queue.history(task)
    assert (first.error_type, first.error_class) == ("psycopg.errors.AdminShutdown", "TRANSIENT")


def test_a_transaction_that_takes_too_long_gives_up_its_locks(
    queue: Queue, start: Start, hold: Hold
) -> None:
    queue.alter(ladder=["1 hour"])
    queue.db.execute("create table public.trace (task_id uuid)")

    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("lock table public.trace")
        while hold.file.exists():
            time.sleep(0.01)

    start(handlers=registered(act, transactional=True, timeout=0.5))
    task = queue.submit("act")
    queue.wait_for_outcomes("FAILED", task)
    queue.db.execute("set lock_timeout = '10s'")
    queue.db.execute("drop table public.trace")
    hold.end()


def test_a_statement_of_a_transaction_that_takes_too_long_is_ended_in_the_server(
    queue: Queue, start: Start
) -> None:
    queue.alter(ladder=["1 hour"])

    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("select pg_sleep(600) as slow")

    start(handlers=registered(act, transactional=True, timeout=0.5))
    queue.wait_for_outcomes("FAILED", queue.submit("act"))
    slow = (
        "select from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and query like '%as slow%'"
    )
    wait_until(lambda: not queue.db.execute(slow).fetchall())


def test_a_shutdown_ends_a_transaction_that_still_runs(
    queue: Queue, start: Start, hold: Hold
) -> None:
    queue.db.execute("create table public.trace (task_id uuid)")

    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        connection.execute("lock table public.trace")
        hold.began.touch()
        while hold.file.exists():
            time.sleep(0.01)

    runner = start(handlers=registered(act, transactional=True))
    task = queue.submit("act")
    hold.wait_until_begun()
    runner.stop(grace=0)
    queue.db.execute("set lock_timeout = '10s'")
    queue.db.execute("drop table public.trace")
    assert queue.outcomes(task) == ["RELEASED"]
    hold.end()


@pytest.mark.parametrize("is_async", [False, True])
def test_transactions_share_a_connection_and_nothing_that_was_set_in_it(
    queue: Queue, start: Start, is_async: bool
) -> None:
    seen: list[tuple[object, ...]] = []
    look = "select pg_backend_pid(), current_setting('application_name'), to_regclass('scratch')"
    leave = [
        "set application_name = 'mine'",
        "create temporary table scratch ()",
        "select pg_advisory_lock(7)",
    ]

    def act(task: Task, connection: psycopg.Connection[Any]) -> None:
        seen.extend(connection.execute(look).fetchall())
        for statement in leave:
            connection.execute(statement)

    async def act_async(task: Task, connection: psycopg.AsyncConnection[Any]) -> None:
        seen.extend(await (await connection.execute(look)).fetchall())
        for statement in leave:
            await connection.execute(statement)

    own = registered(act_async if is_async else act, transactional=True)
    start(handlers=own, concurrency=1, name="runner-1")
    tasks = [queue.submit("act") for _ in range(3)]
    queue.wait_for("SUCCEEDED", *tasks)
    assert len(seen) == 3
    assert {row[1:] for row in seen} == {("rdq-runner runner-1", None)}
    assert len({row[0] for row in seen}) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_transactions_go_on_when_the_connections_that_were_kept_are_lost(
    queue: Queue, start: Start, is_async: bool
) -> None:
    def act(task: Task, connection: psycopg.Connection[Any]) -> None: ...

    async def act_async(task: Task, connection: psycopg.AsyncConnection[Any]) -> None: ...

    start(handlers=registered(act_async if is_async else act, transactional=True))
    queue.wait_for("SUCCEEDED", queue.submit("act"))
    queue.end_other_sessions()
    task = queue.submit("act")
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["SUCCEEDED"]
