"""A deploy costs nobody an attempt, and no result is lost on the way out."""

import signal
import time
from pathlib import Path

import pytest

from tests.runner.conftest import Hold, Queue, Run, Start
from tests.waiting import wait_until


def test_a_shutdown_commits_what_finishes_and_hands_back_the_rest(
    queue: Queue, run: Run, hold: Hold
) -> None:
    finishing = queue.submit("finish")
    heeding = queue.submit("heed")
    deaf = queue.submit("hold", **hold.payload)
    runner = run("--concurrency", "3", "--grace", "5")
    queue.wait_for("IN_FLIGHT", finishing, heeding, deaf)
    # What is claimed and has not begun is handed back.
    wait_until(lambda: [e["event"] for e in runner.events].count("attempt begins") == 3)
    waiting = queue.submit("ok")
    runner.signal(signal.SIGTERM)
    assert runner.ended() == 0
    assert queue.outcomes(finishing) == ["SUCCEEDED"]
    for task in (heeding, deaf):
        assert queue.outcomes(task) == ["RELEASED"]
        row = queue.task(task)
        assert (row.status, row.attempt_count) == ("PENDING", 0)
        due_in = row.next_attempt_at - queue.history(task)[0].finished_at
        assert due_in.total_seconds() < 0.5
    assert queue.history(deaf)[0].message == "shutdown"
    assert queue.outcomes(waiting) == []
    assert queue.in_flight() == 0


def test_a_second_signal_ends_the_grace_period(queue: Queue, run: Run, hold: Hold) -> None:
    task = queue.submit("hold", **hold.payload)
    runner = run("--grace", "600")
    hold.wait_until_begun()
    runner.signal(signal.SIGINT)
    time.sleep(0.2)
    assert runner.process.poll() is None
    runner.signal(signal.SIGINT)
    assert runner.ended() == 0
    assert queue.outcomes(task) == ["RELEASED"]


def test_five_deploys_leave_the_budget_as_it_was(queue: Queue, run: Run, hold: Hold) -> None:
    queue.alter(max_attempts=3)
    task = queue.submit("hold", **hold.payload)
    for _ in range(5):
        runner = run("--grace", "0")
        hold.wait_until_begun()
        assert runner.stop() == 0
    hold.end()
    run()
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["RELEASED"] * 5 + ["SUCCEEDED"]


def test_neither_a_hung_handler_nor_its_threads_keep_the_process(queue: Queue, run: Run) -> None:
    task = queue.submit("thread")
    runner = run("--grace", "0")
    queue.wait_for("IN_FLIGHT", task)
    runner.wait_for("attempt begins")
    assert runner.stop() == 0
    assert queue.outcomes(task) == ["RELEASED"]


def test_a_result_that_comes_after_the_shutdown_is_dropped(
    queue: Queue, start: Start, hold: Hold
) -> None:
    runner = start()
    task = queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    runner.stop(grace=0)
    hold.end()
    assert runner.interrupted == 1
    assert queue.outcomes(task) == ["RELEASED"]


def test_a_runner_stops_once_and_starts_once(start: Start) -> None:
    runner = start()
    runner.stop()
    runner.stop()
    with pytest.raises(RuntimeError, match="starts once"):
        runner.start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_handlers_are_imported_ends_the_process(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    # https://github.com/daily-co/pipecat-cloud-images/issues/104
    began = tmp_path / "began"
    module = tmp_path / "slow_to_import.py"
    module.write_text(
        f"import pathlib, time\npathlib.Path({str(began)!r}).touch()\ntime.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    runner = run("--handlers", "slow_to_import")
    wait_until(began.exists)
    runner.signal(number)
    assert runner.ended() == 0


def test_a_closed_terminal_is_a_shutdown(queue: Queue, run: Run, hold: Hold) -> None:
    task = queue.submit("finish")
    runner = run()
    queue.wait_for("IN_FLIGHT", task)
    runner.wait_for("attempt begins")
    runner.signal(signal.SIGHUP)
    assert runner.ended() == 0
    assert queue.outcomes(task) == ["SUCCEEDED"]


def test_what_a_timed_out_coroutine_left_in_a_thread_ends_with_the_runner(
    queue: Queue, run: Run, tmp_path: Path
) -> None:
    # https://github.com/python/cpython/issues/111358
    queue.alter(ladder=["1 hour"])
    runner = run("--handlers", "tests.runner.ordeals")
    task = queue.submit("async-timed", do="sleep in a thread")
    queue.wait_for_outcomes("FAILED", task)
    began = time.monotonic()
    assert runner.stop() == 0
    assert time.monotonic() - began < 20
