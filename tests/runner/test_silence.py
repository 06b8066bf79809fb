"""A server that no longer answers, though nothing says so, is given up; then the work goes on."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from rdq_runner import Handlers, Runner, Task, gauges, listener, sessions
from rdq_runner.gauges import QueueGauges
from rdq_runner.sessions import Database
from tests.conftest import Connect
from tests.runner.behaviours import handlers
from tests.runner.conftest import Hold, Queue, Start
from tests.runner.networks import Network
from tests.waiting import wait_until
from tools.postgres import Server

PATIENCE = 1.0
# Less than a runner takes at most: what is left of a wait, a connection, a pause, and some air.
RECOVERY_SECONDS = PATIENCE + sessions.LEAST_CONNECT_SECONDS + 5


@pytest.fixture
def network(database: str) -> Iterator[Network]:
    """The network between a runner and the test's database."""
    with Network(database).running() as network:
        yield network


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale times down."""
    monkeypatch.setattr(sessions, "PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(sessions, "LONGEST_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(listener, "ALIVE_SECONDS", 0.5)
    monkeypatch.setattr(listener, "ANSWER_SECONDS", PATIENCE)
    monkeypatch.setattr(gauges, "PATIENCE_SECONDS", PATIENCE)


@pytest.mark.parametrize("forgets", [True, False])
def test_after_a_silence_the_runner_hears_and_works_again(
    queue: Queue, start: Start, network: Network, only_notices: dict[str, float], forgets: bool
) -> None:
    start(dsn=network.dsn, **only_notices)
    wait_until(queue.listener)
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    network.silence()
    unheard = queue.submit("ok")
    # The idle connection of the listener is the only one that could find out.
    wait_until(lambda: network.unanswered >= 4, 20)
    if forgets:
        network.forget()
    network.restore()
    queue.wait_for("SUCCEEDED", unheard, seconds=RECOVERY_SECONDS)
    wait_until(queue.listener)
    announced = queue.submit("ok")
    queue.wait_for("SUCCEEDED", announced, seconds=2)
    assert queue.outcomes(unheard) == queue.outcomes(announced) == ["SUCCEEDED"]


def test_a_claim_that_was_held_up_is_not_leased_to_nobody(
    queue: Queue, start: Start, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    start(dsn=network.dsn, poll_interval=0.05)
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    network.silence()
    task = queue.submit("ok")
    wait_until(lambda: "database unavailable" in caplog.messages, 20)
    time.sleep(PATIENCE)  # whichever session found out first, by now the claim is given up too
    network.restore()
    queue.wait_for("SUCCEEDED", task, seconds=RECOVERY_SECONDS)
    assert queue.outcomes(task) == ["SUCCEEDED"]


def test_a_lease_is_renewed_by_a_second_try(
    queue: Queue, start: Start, network: Network, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others find out too late.
    monkeypatch.setattr(sessions, "PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(listener, "ALIVE_SECONDS", 60.0)
    queue.alter(lease="4 seconds")
    start(dsn=network.dsn, poll_interval=3600.0)
    task = queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    network.forget()
    end = time.monotonic() + 6
    while time.monotonic() < end:
        assert not queue.db.execute("select rdq.reclaim(10)").fetchall()
        time.sleep(0.05)
    hold.end()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["SUCCEEDED"]


def test_stopped_processes_of_the_server_are_left_for_others(
    own_server: Server, hold: Hold
) -> None:
    stopped: list[int] = []
    with psycopg.connect(own_server.dsn(), autocommit=True) as db:
        queue = Queue(db)
        queue.alter(lease="4 seconds")
        task = queue.submit("hold", **hold.payload)
        runner = Runner(own_server.dsn(), queues=["q"], handlers=handlers, poll_interval=0.2)
        try:
            with runner:
                hold.wait_until_begun()
                wait_until(queue.listener)
                stopped += [
                    pid
                    for (pid,) in db.execute(
                        "select pid from pg_stat_activity where application_name ~ '^rdq-runner'"
                    )
                ]
                assert len(stopped) >= 4
                for pid in stopped:
                    os.kill(pid, signal.SIGSTOP)
                end = time.monotonic() + 6
                while time.monotonic() < end:
                    assert not db.execute("select rdq.reclaim(10)").fetchall()
                    time.sleep(0.05)
                hold.end()
                queue.wait_for("SUCCEEDED", task, queue.submit("ok"))
                assert queue.outcomes(task) == ["SUCCEEDED"]
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)


def test_results_of_leases_that_others_took_in_a_silence_are_refused(
    queue: Queue, start: Start, network: Network, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    queue.alter(lease="1 second", ladder=["1 hour"])
    start(dsn=network.dsn)
    deaf = queue.submit("hold", **hold.payload)
    heeding = queue.submit("heed")
    hold.wait_until_begun()
    queue.wait_for("IN_FLIGHT", heeding)
    network.silence()
    wait_until(lambda: caplog.messages.count("lease ended unrenewed") == 2, 20)
    hold.end()
    queue.db.execute("select rdq.reclaim(10)")
    assert queue.outcomes(deaf) == queue.outcomes(heeding) == ["LEASE_EXPIRED"]
    network.restore()
    for task, late in ((deaf, "SUCCEEDED"), (heeding, "RELEASED")):
        queue.wait_for_late_report(task, RECOVERY_SECONDS)
        [attempt] = queue.history(task)
        assert (attempt.outcome, attempt.late_outcome) == ("LEASE_EXPIRED", late)
        assert queue.status(task) == "PENDING"


def wait_and_note(task: Task, connection: psycopg.Connection[object]) -> None:
    """Hold, and leave a trace then."""
    if task.attempt_no == 1:
        handlers.registration("hold").function(task)
    connection.execute("insert into public.trace values (%s)", [task.id])


async def wait_and_note_async(task: Task, connection: psycopg.AsyncConnection[object]) -> None:
    """Hold, and leave a trace then."""
    if task.attempt_no == 1:
        handlers.registration("hold").function(task)
    await connection.execute("insert into public.trace values (%s)", [task.id])


@pytest.mark.parametrize("function", [wait_and_note, wait_and_note_async])
def test_a_transaction_in_a_silence_ends_when_its_lease_has_ended(
    queue: Queue,
    start: Start,
    network: Network,
    hold: Hold,
    caplog: pytest.LogCaptureFixture,
    function: Callable[..., object],
) -> None:
    queue.db.execute("create table public.trace (task_id uuid)")
    queue.alter(lease="1 second")
    own = Handlers()
    own.handler("note", transactional=True)(function)
    start(dsn=network.dsn, handlers=own, concurrency=1, poll_interval=0.2)
    task = queue.submit("note", **hold.payload)
    hold.wait_until_begun()
    network.silence()
    hold.end()
    wait_until(lambda: "lease ended unrenewed" in caplog.messages, 20)
    network.forget()
    network.restore()
    # The one slot is free again only if the statement has ended.
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task)[1:] == ["SUCCEEDED"]
    assert queue.db.execute("select task_id from trace").fetchall() == [(task,)]


def test_a_statement_of_a_transaction_may_take_long(queue: Queue, start: Start) -> None:
    def dawdle(task: Task, connection: psycopg.Connection[object]) -> None:
        connection.execute("select pg_sleep(%s)", [2.5 * PATIENCE])

    own = Handlers()
    own.handler("dawdle", transactional=True)(dawdle)
    start(handlers=own)
    task = queue.submit("dawdle")
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["SUCCEEDED"]


def test_gauges_come_back_after_a_silence(queue: Queue, network: Network) -> None:
    client = Database(network.dsn, "test")
    collector = QueueGauges(client)

    def is_answered() -> bool:
        *_, success = collector.collect()
        return bool(success.samples[0].value)

    try:
        assert is_answered()
        network.silence()
        wait_until(lambda: not is_answered())
        network.forget()
        network.restore()
        wait_until(is_answered, RECOVERY_SECONDS)
    finally:
        collector.close()
        client.close()


def test_what_waits_for_a_lock_does_not_pile_up_in_the_server(
    queue: Queue, start: Start, connect: Connect
) -> None:
    start()
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    other = connect(autocommit=False)
    other.execute("lock table rdq.attempt in share mode")
    task = queue.submit("ok")
    waited: set[int] = set()

    def have_waited() -> bool:
        rows = queue.db.execute(
            "select pid, wait_event_type from pg_stat_activity"
            " where application_name ~ '^rdq-runner' and datname = current_database()"
        ).fetchall()
        # Claims, heartbeat, reports, listener, registry; and one that just ends.
        assert len(rows) <= 6
        waited.update(pid for pid, event in rows if event == "Lock")
        return len(waited) >= 5

    wait_until(have_waited, 20)
    other.rollback()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["SUCCEEDED"]
