"""A lease is kept for as long as its handler runs, and no longer than the process that has it."""

import time
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from rdq_runner.leases import Leases
from rdq_runner.rows import Claim
from tests.runner.conftest import Hold, Queue, Run, Start
from tests.waiting import wait_until


@pytest.mark.slow
def test_no_handler_loses_its_lease_by_being_blocked_busy_or_long(queue: Queue, run: Run) -> None:
    queue.alter(lease="2 seconds")
    run()
    tasks = [queue.submit(handler, seconds=7) for handler in ("sleep", "spin", "block")]
    tasks.append(queue.submit("sleep", seconds=20))
    while {queue.status(task) for task in tasks} != {"SUCCEEDED"}:
        # As any other worker does.
        assert not queue.db.execute("select rdq.reclaim(10)").fetchall()
        time.sleep(0.05)
    for task in tasks:
        assert queue.outcomes(task) == ["SUCCEEDED"]


def test_nothing_expires_while_it_waits_for_a_slot(queue: Queue, run: Run) -> None:
    queue.alter(lease="2 seconds")
    tasks = [queue.submit("sleep", seconds=0.67) for _ in range(10)]
    run("--concurrency", "1")
    leased = 0
    while {queue.status(task) for task in tasks} != {"SUCCEEDED"}:
        leased = max(leased, queue.in_flight())
        time.sleep(0.02)
    # The one that runs, and the one before it that is just being reported.
    assert leased in (1, 2)
    assert {tuple(queue.outcomes(task)) for task in tasks} == {("SUCCEEDED",)}


def test_a_task_for_later_is_not_held_meanwhile(queue: Queue, start: Start) -> None:
    queue.db.execute("select rdq.submit('q', 'ok', '', run_at => now() + interval '6 hours')")
    start()
    # By then the runner has claimed all that it claims.
    queue.wait_for("SUCCEEDED", *[queue.submit("ok") for _ in range(10)])
    assert queue.in_flight() == 0
    [scheduled] = queue.db.execute("select scheduled from rdq.queue_stats where queue = 'q'")
    assert scheduled == (1,)


def test_a_task_of_a_killed_runner_is_taken_up_by_another(
    queue: Queue, run: Run, hold: Hold
) -> None:
    queue.alter(lease="2 seconds")
    task = queue.submit("hold", **hold.payload)
    victim = run("--name", "victim")
    hold.wait_until_begun()
    victim.kill()
    run("--name", "heir", "--poll-interval", "0.2")
    hold.wait_until_begun()
    hold.end()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["LEASE_EXPIRED", "SUCCEEDED"]
    assert [attempt.runner for attempt in queue.history(task)] == ["victim", "heir"]


def test_after_a_redrive_a_killed_runner_leaves_one_more_attempt(
    queue: Queue, run: Run, hold: Hold
) -> None:
    queue.alter(lease="2 seconds", max_attempts=1)
    task = queue.submit_text("hold", "{")
    first = run()
    queue.wait_for("DEAD", task)
    queue.alter(max_attempts=2)
    queue.redrive(task, **hold.payload)
    hold.wait_until_begun()
    first.kill()
    run("--poll-interval", "0.2")
    hold.wait_until_begun()
    hold.end()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["FAILED", "LEASE_EXPIRED", "SUCCEEDED"]


def test_a_task_that_kills_its_process_is_dead_when_its_budget_is_spent(
    queue: Queue, run: Run
) -> None:
    queue.alter(lease="1 second", max_attempts=3)
    task = queue.submit("vanish")
    for _ in range(3):
        assert run("--poll-interval", "0.2").ended() == 9
    run("--poll-interval", "0.2")
    queue.wait_for("DEAD", task)
    assert queue.task(task).dead_reason == "VANISHED"
    assert queue.outcomes(task) == ["LEASE_EXPIRED"] * 3


def test_the_neighbour_of_a_task_that_kills_its_process_succeeds_later(
    queue: Queue, run: Run, hold: Hold
) -> None:
    queue.alter(lease="1 second")
    neighbour = queue.submit("hold", **hold.payload)
    task = queue.submit("vanish", neighbour=hold.payload["began"])
    assert run().ended() == 9
    hold.end()
    run("--poll-interval", "0.2")
    queue.wait_for("SUCCEEDED", task, neighbour)
    for task_id in (task, neighbour):
        assert queue.outcomes(task_id) == ["LEASE_EXPIRED", "SUCCEEDED"]


def test_a_task_that_a_runner_claims_again_cancels_its_own_earlier_attempt() -> None:
    leases = Leases()
    [earlier, other] = leases.take([a_claim(1), a_claim(2)], 0.0)
    [later] = leases.take([a_claim(1)], 0.0)
    assert [lease.task.cancelled for lease in (earlier, other, later)] == [True, False, False]


def a_claim(number: int) -> Claim:
    """Return a claim of the task of that number."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return Claim(
        UUID(int=number), uuid4(), "q", "ok", None, b"", "text/plain", {}, 1, 1, 0, moment, None, 60
    )


def test_a_handler_is_told_that_its_lease_is_lost(queue: Queue, start: Start) -> None:
    queue.alter(lease="3 seconds", ladder=["1 hour"])
    start()
    task = queue.submit("heed")
    queue.wait_for("IN_FLIGHT", task)
    queue.take_back(task)
    wait_until(lambda: queue.history(task)[0].late_at)
    [attempt] = queue.history(task)
    assert (attempt.outcome, attempt.late_outcome) == ("LEASE_EXPIRED", "RELEASED")
