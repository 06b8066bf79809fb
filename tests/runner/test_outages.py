"""The database goes away and comes back; nothing is lost, and nobody has to help."""

import time
from pathlib import Path

import psycopg

from tests.runner.conftest import Hold, Queue, Run, Start
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until
from tools.postgres import Server


def test_a_listener_that_lost_its_session_listens_again(
    queue: Queue, start: Start, only_notices: dict[str, float]
) -> None:
    start(**only_notices)
    for _ in range(3):
        pid = wait_until(queue.listener)
        queue.db.execute("select pg_terminate_backend(%s, 5000)", [pid])
        in_the_gap = queue.submit("ok")
        queue.wait_for("SUCCEEDED", in_the_gap)
        announced = queue.submit("ok")
        queue.wait_for("SUCCEEDED", announced)


def test_a_task_for_later_starts_when_it_is_due(
    queue: Queue, start: Start, only_notices: dict[str, float]
) -> None:
    queue.alter(max_attempts=2, ladder=["0.7 seconds"])
    start(**only_notices)
    task = queue.submit("raise", error="timeout")
    queue.wait_for("DEAD", task)
    first, second = queue.history(task)
    assert (second.started_at - first.finished_at).total_seconds() >= 0.7


def test_a_handler_runs_through_the_loss_of_every_session(
    queue: Queue, run: Run, hold: Hold
) -> None:
    task = queue.submit("hold", **hold.payload)
    runner = run()
    hold.wait_until_begun()
    queue.end_other_sessions()
    runner.wait_for("database available again")
    hold.end()
    after = queue.submit("ok")
    queue.wait_for("SUCCEEDED", task, after)
    assert queue.outcomes(task) == ["SUCCEEDED"]
    runner.stop()
    events = [line["event"] for line in runner.events if line["event"].startswith("database")]
    assert events == ["database unavailable", "database available again"]


def test_a_read_only_server_is_left_for_the_one_that_takes_over(queue: Queue, run: Run) -> None:
    name = queue.db.info.dbname
    queue.db.execute(f'alter database "{name}" set default_transaction_read_only = on')
    task = queue.submit("ok")
    runner = run()
    runner.wait_for("database unavailable")
    assert any(line.get("sqlstate") == "25006" for line in runner.events)
    # Only a new session sees it, as only a new connection finds the new primary.
    queue.db.execute(f'alter database "{name}" reset default_transaction_read_only')
    queue.wait_for("SUCCEEDED", task)


def test_results_that_cannot_be_reported_keep_their_leases_and_stop_claims(
    queue: Queue, start: Start
) -> None:
    queue.alter(lease="2 seconds")
    queue.db.execute("alter function rdq.report rename to report_away")
    start(concurrency=2, max_unreported=4)
    tasks = [queue.submit("ok") for _ in range(20)]
    wait_until(lambda: queue.in_flight() >= 4)
    # Longer than the lease, so that it was renewed.
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        assert queue.in_flight() <= 4 + 2
        time.sleep(0.05)
    queue.db.execute("alter function rdq.report_away rename to report")
    queue.wait_for("SUCCEEDED", *tasks)
    for task in tasks:
        assert queue.outcomes(task) == ["SUCCEEDED"]


def test_a_runner_waits_for_its_server_and_through_its_restart(
    own_server: Server, tmp_path: Path, hold: Hold
) -> None:
    with psycopg.connect(own_server.dsn(), autocommit=True) as db:
        task = Queue(db).submit("hold", **hold.payload)
    own_server.stop()
    runner = RunnerProcess(own_server.dsn(), tmp_path)
    try:
        runner.wait_for("database unavailable")
        own_server.start()
        hold.wait_until_begun()
        own_server.restart()
        hold.end()
        with psycopg.connect(own_server.dsn(), autocommit=True) as db:
            queue = Queue(db)
            queue.wait_for("SUCCEEDED", task, queue.submit("ok"))
            assert queue.outcomes(task) == ["SUCCEEDED"]
    finally:
        runner.kill()


def test_a_handler_is_told_when_the_database_is_away_for_longer_than_the_lease(
    own_server: Server, tmp_path: Path
) -> None:
    with psycopg.connect(own_server.dsn(), autocommit=True) as db:
        queue = Queue(db)
        queue.alter(lease="1 second", ladder=["1 hour"])
        task = queue.submit("heed")
        runner = RunnerProcess(own_server.dsn(), tmp_path)
        try:
            queue.wait_for("IN_FLIGHT", task)
            own_server.kill()
            runner.wait_for("lease ended unrenewed")
            own_server.start()
            # The token decides: what comes first, its report or a claim that reclaims it.
            runner.wait_for("attempt ended")
        finally:
            runner.kill()
    with psycopg.connect(own_server.dsn(), autocommit=True) as db:
        assert Queue(db).outcomes(task) in (["RELEASED"], ["LEASE_EXPIRED"])
