"""A runner that was started wrongly says so and ends; one that was not goes on."""

import signal
import subprocess
import sys
import threading
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rdq_runner import Runner
from rdq_runner.sessions import is_outage
from tests.runner.behaviours import handlers
from tests.runner.conftest import Hold, Queue, Run, Start
from tests.runner.processes import ROOT
from tests.waiting import LONGEST_SECONDS


def rdq_runner(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "rdq_runner", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_a_queue_that_does_not_exist_ends_the_start(database: str, run: Run) -> None:
    runner = run()
    assert runner.ended() == 1
    assert 'queue "q" does not exist' in runner.output
    assert "rdq.create_queue" in runner.output


def test_a_queue_that_was_dropped_later_does_not_end_the_runner(queue: Queue, run: Run) -> None:
    queue.db.execute("select rdq.create_queue('other')")
    runner = run("--queue", "other")
    task = queue.submit("ok")
    queue.wait_for("SUCCEEDED", task)
    queue.db.execute("select rdq.drop_queue('other')")
    after = queue.submit("ok")
    runner.wait_for("database refuses")
    queue.db.execute("select rdq.create_queue('other')")
    queue.wait_for("SUCCEEDED", after)


def test_the_garbage_collector_does_not_look_at_what_is_loaded(queue: Queue, run: Run) -> None:
    run()
    task = queue.submit("tell-of-rubbish")
    queue.wait_for("DEAD", task)
    [attempt] = queue.history(task)
    assert attempt.message == "after 5000, kept: True"


def test_a_database_without_rdq_ends_the_start(database: str, run: Run, db: Any) -> None:
    db.execute("drop schema rdq cascade")
    runner = run()
    assert runner.ended() == 1
    assert "run rdq-runner migrate" in runner.output


@pytest.mark.parametrize("version", ["0.1.0", "0.3.0", "1.1.0"])
def test_a_schema_of_another_version_ends_the_start(queue: Queue, run: Run, version: str) -> None:
    set_version(queue, version)
    runner = run()
    assert runner.ended() == 1
    assert f"version {version}" in runner.output


def test_a_schema_with_a_later_patch_is_known(queue: Queue, start: Start) -> None:
    set_version(queue, "0.2.9")
    start()
    queue.wait_for("SUCCEEDED", queue.submit("ok"))


def set_version(queue: Queue, version: str) -> None:
    """Have the schema say that it is of this version."""
    queue.db.execute(
        "create or replace function rdq.version() returns text language sql immutable"
        f" return '{version}'"
    )


def test_a_role_that_may_only_work_in_one_queue_is_enough(
    database: str, queue: Queue, run: Run, hold: Hold
) -> None:
    role = f"rdq_worker_{uuid4().hex}"
    queue.db.execute(f"create role {role}")
    try:
        queue.db.execute("select rdq.grant_access(%s, 'worker', array['q'])", [role])
        # Of two options of one name the last one counts.
        runner = run("--dsn", make_conninfo(database, options=f"-c role={role}"))
        queue.wait_for("SUCCEEDED", queue.submit("ok"))
        dead = queue.submit("raise", error="permanent")
        queue.wait_for("DEAD", dead)
        held = queue.submit("hold", **hold.payload)
        hold.wait_until_begun()
        runner.signal(signal.SIGTERM)
        hold.end()
        assert runner.ended() == 0
        assert queue.outcomes(held) == ["SUCCEEDED"]
        assert not runner.has_said("database refuses")
        assert not runner.has_said("database unavailable")
    finally:
        queue.db.execute(f"drop owned by {role}; drop role {role}")


def test_handlers_that_are_not_there_end_the_start_before_any_claim(queue: Queue, run: Run) -> None:
    task = queue.submit("ok")
    runner = run("--handlers", "no_such_app.handlers")
    assert runner.ended() == 1
    assert "there is no module 'no_such_app'" in runner.output
    assert queue.outcomes(task) == []


def test_migrate_installs_the_schema_and_says_what_it_did(database: str, db: Any) -> None:
    db.execute("drop schema rdq cascade")
    db.execute("drop schema rdq_migrations cascade")
    done = rdq_runner("migrate", "--dsn", database)
    assert done.returncode == 0, done.stderr
    assert "0001" in done.stdout
    assert db.execute("select rdq.version()").fetchone()


def test_migrate_without_a_database_says_so_in_a_line() -> None:
    done = rdq_runner("migrate", "--dsn", make_conninfo(host="127.0.0.1", port=1))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_a_runner_in_an_application_runs_until_it_is_stopped(database: str, queue: Queue) -> None:
    runner = Runner(database, queues=None, handlers=handlers)
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    runner.stop()
    thread.join(LONGEST_SECONDS)
    assert not thread.is_alive()


def test_a_runner_that_cannot_go_on_raises_the_reason(database: str) -> None:
    runner = Runner(database, queues=["no-such-queue"], handlers=handlers)
    with pytest.raises(psycopg.Error, match="no-such-queue"):
        runner.run()


class TooLate(psycopg.DatabaseError):
    """Of a claim after its not_after."""

    sqlstate = "RD009"


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), True),
        (psycopg.InterfaceError("the connection is closed"), True),
        (psycopg.errors.AdminShutdown(), True),
        (psycopg.errors.QueryCanceled(), True),
        (psycopg.errors.ReadOnlySqlTransaction(), True),
        (psycopg.errors.DeadlockDetected(), True),
        (psycopg.errors.UndefinedFunction(), True),
        (psycopg.errors.InvalidSqlStatementName(), True),
        (psycopg.errors.FeatureNotSupported("cached plan must not change result type"), True),
        (TooLate(), True),
        (psycopg.errors.UntranslatableCharacter(), False),
        (psycopg.errors.ProgramLimitExceeded(), False),
        (psycopg.errors.InternalError_(), False),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), False),
    ],
    ids=repr,
)
def test_an_outage_is_what_another_try_may_not_meet(error: psycopg.Error, outage: bool) -> None:
    assert is_outage(error) == outage
