"""A runner does not judge a task that it has no handler for."""

from tests.runner.conftest import Queue, Run


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
