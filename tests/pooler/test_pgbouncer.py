"""Behind PgBouncer the work goes on: where a session is another's after each transaction too."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rdq_runner import Handlers, Runner, sessions, submit, submit_many
from tests.configuration.command import rdq_runner
from tests.pooler.conftest import Pooler, StartPooler
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until

TASKS = 1000
TROUBLE = {"database unavailable", "database refuses", "runner cannot go on", "report refused"}
DEAF = "cannot listen behind this pooler: the runner polls"


@pytest.fixture
def runners(tmp_path: Path) -> Iterator[list[RunnerProcess]]:
    started: list[RunnerProcess] = []
    yield started
    for runner in started:
        runner.kill()


@pytest.fixture
def queue(db: psycopg.Connection[Any]) -> str:
    db.execute("select rdq.create_queue('q')")
    return "q"


def statuses(db: psycopg.Connection[Any]) -> dict[str, int]:
    """Return how many tasks are in which state."""
    return dict(db.execute("select status, count(*) from rdq.tasks group by status").fetchall())


def test_two_runners_complete_1000_tasks_over_two_connections(
    pooler: Pooler,
    queue: str,
    db: psycopg.Connection[Any],
    tmp_path: Path,
    runners: list[RunnerProcess],
) -> None:
    with psycopg.connect(pooler.dsn, prepare_threshold=None) as producer:
        ids = submit_many(producer, queue, [{"handler": "ok", "payload": n} for n in range(TASKS)])
    runners += [
        RunnerProcess(pooler.dsn, tmp_path, "--poll-interval", "0.5", "--name", name)
        for name in ("one", "two")
    ]
    wait_until(lambda: statuses(db) == {"SUCCEEDED": TASKS}, 60)
    for runner in runners:
        runner.wait_for(DEAF)
    later = [submit(db, queue, "ok", "by polling") for _ in range(5)]
    wait_until(lambda: statuses(db) == {"SUCCEEDED": TASKS + len(later)})
    attempts = db.execute(
        "select task_id, count(*), max(outcome) from rdq.attempt group by task_id"
    ).fetchall()
    assert {row[0] for row in attempts} == {*ids, *later}
    assert {row[1:] for row in attempts} == {(1, "SUCCEEDED")}
    # No transaction is open, let alone broken, and nothing is prepared under anybody's name.
    wait_until(lambda: open_transactions(db) == [])
    assert len(pooler.show("servers")) <= 2
    for runner in runners:
        assert runner.stop() == 0
        said = Counter(event["event"] for event in runner.events)
        assert not TROUBLE & said.keys()
        assert said[DEAF] == 1
    assert "prepared statement" not in pooler.log
    assert "ERROR" not in pooler.log


def open_transactions(db: psycopg.Connection[Any]) -> list[Any]:
    """Return the sessions in a transaction, other than ours."""
    return db.execute(
        "select pid, state, query from pg_stat_activity where datname = current_database()"
        " and state like 'idle in transaction%' and pid <> pg_backend_pid()"
    ).fetchall()


def test_a_failing_handler_leaves_no_broken_transaction(
    pooler: Pooler, queue: str, db: psycopg.Connection[Any]
) -> None:
    handlers = Handlers()
    handlers.handler("fail")(lambda task: 1 / 0)
    db.execute("""select rdq.alter_queue('q', '{"max_attempts": 2, "backoff_base": 0.01}')""")
    with Runner(pooler.dsn, queues=[queue], handlers=handlers, poll_interval=0.2):
        submit_many(db, queue, [{"handler": "fail", "payload": n} for n in range(20)])
        wait_until(lambda: statuses(db) == {"DEAD": 20})
        wait_until(lambda: open_transactions(db) == [])


def test_a_pooler_of_sessions_lets_a_runner_hear(
    start_pooler: StartPooler, queue: str, db: psycopg.Connection[Any]
) -> None:
    pooler = start_pooler("session", 20)
    handlers = Handlers()
    handlers.handler("ok")(lambda task: None)
    with Runner(pooler.dsn, queues=[queue], handlers=handlers, poll_interval=3600):
        submit(db, queue, "ok", "first")
        wait_until(lambda: statuses(db) == {"SUCCEEDED": 1})
        wait_until(lambda: listening(db))
        submit(db, queue, "ok", "second")
        wait_until(lambda: statuses(db) == {"SUCCEEDED": 2})


def listening(db: psycopg.Connection[Any]) -> bool:
    """Whether some session of the database has begun to listen to what is due."""
    row = db.execute(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and query = 'listen rdq_due'"
    ).fetchone()
    return row == (1,)


def test_a_server_that_is_lent_does_not_go_on_listening(
    pooler: Pooler, queue: str, db: psycopg.Connection[Any], tmp_path: Path, runners: Any
) -> None:
    runners.append(RunnerProcess(pooler.dsn, tmp_path))
    runners[0].wait_for(DEAF)
    with ExitStack() as stack:
        # Two transactions at once have both of the servers.
        clients = [
            stack.enter_context(psycopg.connect(pooler.dsn, prepare_threshold=None))
            for _ in range(2)
        ]
        rows = [
            row
            for client in clients
            for row in client.execute("select pg_backend_pid(), pg_listening_channels()")
        ]
        assert (
            len({client.execute("select pg_backend_pid()").fetchone() for client in clients}) == 2
        )
    assert {channel for _, channel in rows} == {"rdq_probe"}


def test_a_pooler_that_does_not_answer_is_given_up(
    pooler: Pooler,
    queue: str,
    db: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sessions, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(sessions, "LONGEST_PAUSE_SECONDS", 0.5)
    # The pooler may have a claim in its hands, which it then makes for a client that has left.
    db.execute("""select rdq.alter_queue('q', '{"lease": 2, "jitter": 0, "ladder": [0.01]}')""")
    handlers = Handlers()
    handlers.handler("ok")(lambda task: None)
    with Runner(pooler.dsn, queues=[queue], handlers=handlers, poll_interval=0.2):
        submit(db, queue, "ok", "before")
        wait_until(lambda: statuses(db) == {"SUCCEEDED": 1})
        pooler.freeze()
        wait_until(lambda: "database unavailable" in caplog.messages)
        submit(db, queue, "ok", "meanwhile")
        pooler.thaw()
        wait_until(lambda: statuses(db).get("SUCCEEDED") == 2)


def test_apply_works_through_the_pooler(
    pooler: Pooler, db: psycopg.Connection[Any], tmp_path: Path
) -> None:
    file = tmp_path / "rdq.toml"
    file.write_text("[queues.q]\nmax_attempts = 3\n")
    for expected in ("+ queue q", "nothing to change"):
        done = rdq_runner("apply", "--config", file, "--dsn", pooler.dsn)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
