"""A runner does not judge a task that it has no handler for."""

import pytest

from rdq_runner import claims
from tests.runner.behaviours import old
from tests.runner.conftest import Queue, Run, Start


def test_a_task_without_a_handler_here_is_left_to_another_runner(queue: Queue, run: Run) -> None:
    queue.alter(max_attempts=1)
    old = run("--handlers", "tests.runner.behaviours:old")
    task = queue.submit("ok")
    old.wait_for("attempt ended")
    row = queue.task(task)
    assert (row.status, row.attempt_count) == ("PENDING", 0)
    [attempt] = queue.history(task)
    assert attempt.outcome == "RELEASED"
    assert attempt.message == "no handler 'ok' in this runner"
    assert 40 < (row.next_attempt_at - attempt.finished_at).total_seconds() < 80
    old.stop()
    run()
    queue.make_due(task)
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["RELEASED", "SUCCEEDED"]


def test_a_missing_handler_is_said_once_and_not_for_every_task(queue: Queue, run: Run) -> None:
    tasks = [queue.submit("ok") for _ in range(20)]
    runner = run("--handlers", "tests.runner.behaviours:old")
    queue.wait_for_outcomes("RELEASED", *tasks)
    said = [line for line in runner.events if line["event"] == "no such handler in this runner"]
    assert len(said) == 1


def test_a_sweep_needs_no_handler(
    queue: Queue, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.alter(max_attempts=2, ladder=["1 hour"])
    vanished = queue.submit("ok")
    claimed = "select task_id from rdq.claim('{q}', 'another', lease => '0.1 seconds')"
    assert queue.db.execute(claimed).fetchall() == [(vanished,)]
    # Nobody claims, so only a sweep can do anything.
    queue.db.execute("select rdq.pause_queue('q', 'test')")
    late = queue.submit("ok")
    queue.db.execute("update rdq.due set give_up_at = now() where task_id = %s", [late])
    monkeypatch.setattr(claims, "TICK_SECONDS", 0.1)
    start(handlers=old)
    queue.wait_for_outcomes("LEASE_EXPIRED", vanished)
    row = queue.task(vanished)
    assert (row.status, row.attempt_count, row.dead_reason) == ("PENDING", 1, None)
    queue.wait_for("DEAD", late)
    assert (queue.task(late).dead_reason, queue.outcomes(late)) == ("DEADLINE", [])
