"""What happens in a child process stays there, and what happens to it is known."""

import importlib
import sys
from pathlib import Path

import pytest

from tests.runner.conftest import Queue, Run, Start
from tests.runner.ordeals import handlers, registered
from tests.waiting import wait_until


def test_a_mapping_of_errors_counts_in_a_child_too(queue: Queue, start: Start) -> None:
    start(handlers=handlers)
    task = queue.submit("new", do="value")
    queue.wait_for("DEAD", task)
    assert queue.history(task)[0].error_class == "PERMANENT"


def pids(file: Path) -> list[int]:
    """Return the processes that have told of themselves."""
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_child_that_hangs_is_ended_with_its_time(
    queue: Queue, start: Start, tmp_path: Path
) -> None:
    queue.alter(ladder=["1 hour"])
    start(handlers=handlers)
    file = tmp_path / "pids"
    task = queue.submit("process-timed", do="pid and hang", file=str(file))
    queue.wait_for_outcomes("FAILED", task)
    assert queue.history(task)[0].error_type == "rdq_runner.TimedOut"
    [pid] = wait_until(lambda: pids(file))
    wait_until(lambda: not is_alive(pid))


def test_a_shutdown_ends_a_child_before_its_task_is_handed_back(
    queue: Queue, start: Start, tmp_path: Path
) -> None:
    runner = start(handlers=handlers)
    file = tmp_path / "pids"
    task = queue.submit("process", do="pid and hang", file=str(file))
    [pid] = wait_until(lambda: pids(file))
    runner.stop(grace=0)
    assert not is_alive(pid)
    assert queue.outcomes(task) == ["RELEASED"]
    assert queue.history(task)[0].message == "shutdown"


def test_no_child_outlives_a_runner_that_is_killed(queue: Queue, run: Run, tmp_path: Path) -> None:
    runner = run("--handlers", "tests.runner.ordeals")
    file = tmp_path / "pids"
    queue.submit("process", do="pid and hang", file=str(file))
    [pid] = wait_until(lambda: pids(file))
    runner.kill()
    wait_until(lambda: not is_alive(pid))


def test_children_are_kept_and_replaced_after_so_many_attempts(
    queue: Queue, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdq_runner.children.ATTEMPTS", 3)
    start(handlers=handlers, concurrency=1)
    file = tmp_path / "pids"
    tasks = [queue.submit("process", do="pid", file=str(file)) for _ in range(6)]
    queue.wait_for("SUCCEEDED", *tasks)
    first, second = dict.fromkeys(pids(file))
    assert pids(file) == [first] * 3 + [second] * 3
    wait_until(lambda: not is_alive(first))


def test_a_limit_of_memory_is_a_memory_error_of_that_handler(queue: Queue, start: Start) -> None:
    queue.alter(ladder=["1 hour"])
    start(handlers=handlers)
    task = queue.submit("small", do="huge")
    queue.wait_for_outcomes("FAILED", task)
    assert queue.history(task)[0].error_type == "MemoryError"
    queue.wait_for("SUCCEEDED", queue.submit("small", do="return"))


def test_when_a_child_ends_is_not_a_signals_decision(queue: Queue, start: Start) -> None:
    start(handlers=handlers)
    queue.wait_for("SUCCEEDED", queue.submit("process", do="terminate"))


def test_a_child_that_can_no_longer_be_heard_has_died(queue: Queue, start: Start) -> None:
    queue.alter(ladder=["1 hour"])
    start(handlers=handlers)
    task = queue.submit("process", do="close")
    queue.wait_for_outcomes("FAILED", task)
    assert queue.history(task)[0].error_type == "rdq_runner.ChildDied"
    queue.wait_for("SUCCEEDED", queue.submit("process", do="return"))


@pytest.mark.parametrize(
    ("breaks", "error_type", "error_class"),
    [
        ("raise ImportError('gone')", "ImportError", "AMBIGUOUS"),
        ("import os; os._exit(5)", "rdq_runner.ChildDied", "TRANSIENT"),
    ],
)
def test_a_module_that_breaks_in_the_child_costs_an_attempt(
    queue: Queue,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    breaks: str,
    error_type: str,
    error_class: str,
) -> None:
    queue.alter(ladder=["1 hour"])
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "breaks_later.py"
    module.write_text("def act(task): ...")
    monkeypatch.delitem(sys.modules, "breaks_later", raising=False)
    own = registered(importlib.import_module("breaks_later").act, isolation="process")
    module.write_text(breaks)
    start(handlers=own)
    task = queue.submit("act")
    queue.wait_for_outcomes("FAILED", task)
    [attempt] = queue.history(task)
    assert (attempt.error_type, attempt.error_class) == (error_type, error_class)
