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


@pytest.mark.parametrize("breaks", ["raise ImportError('gone')", "import os; os._exit(5)"])
def test_a_module_that_breaks_in_the_child_costs_no_attempt(
    queue: Queue,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    breaks: str,
) -> None:
    # https://github.com/taskforcesh/bullmq/issues/4283
    queue.alter(ladder=["1 hour"], ambiguous_attempts=1, max_attempts=1)
    monkeypatch.setattr("rdq_runner.children.RETRY_SECONDS", 0.2)
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "breaks_later.py"
    good = "def act(task): ..."
    module.write_text(good)
    monkeypatch.delitem(sys.modules, "breaks_later", raising=False)
    own = registered(importlib.import_module("breaks_later").act, isolation="process")
    module.write_text(breaks)
    start(handlers=own)
    tasks = [queue.submit("act") for _ in range(5)]
    queue.wait_for_outcomes("RELEASED", *tasks)
    assert "child process" in queue.history(tasks[0])[0].message
    module.write_text(good)
    queue.wait_for("SUCCEEDED", *tasks, seconds=60)


def test_what_a_child_has_started_ends_with_its_time(
    queue: Queue, start: Start, tmp_path: Path
) -> None:
    # https://github.com/rq/rq/issues/1970
    queue.alter(ladder=["1 hour"])
    start(handlers=handlers)
    file = tmp_path / "pids"
    task = queue.submit("process-timed", do="leave a process and hang", file=str(file))
    queue.wait_for_outcomes("FAILED", task)
    [pid] = wait_until(lambda: pids(file))
    wait_until(lambda: not is_alive(pid))


def test_what_a_child_has_started_ends_before_its_task_is_handed_back(
    queue: Queue, start: Start, tmp_path: Path
) -> None:
    runner = start(handlers=handlers)
    file = tmp_path / "pids"
    task = queue.submit("process", do="leave a process and hang", file=str(file))
    [pid] = wait_until(lambda: pids(file))
    runner.stop(grace=0)
    assert not is_alive(pid)
    assert queue.outcomes(task) == ["RELEASED"]


def test_what_a_child_has_started_ends_with_it(queue: Queue, start: Start, tmp_path: Path) -> None:
    queue.alter(ladder=["1 hour"])
    start(handlers=handlers)
    file = tmp_path / "pids"
    task = queue.submit("process", do="leave a process and exit", file=str(file))
    queue.wait_for_outcomes("FAILED", task)
    [pid] = wait_until(lambda: pids(file))
    wait_until(lambda: not is_alive(pid))


def test_what_a_child_has_started_ends_when_it_is_replaced(
    queue: Queue, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdq_runner.children.ATTEMPTS", 1)
    start(handlers=handlers)
    file = tmp_path / "pids"
    task = queue.submit("process", do="leave a process", file=str(file))
    queue.wait_for("SUCCEEDED", task)
    [pid] = pids(file)
    wait_until(lambda: not is_alive(pid))


@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere a thread notices, and needs the lock"
)
@pytest.mark.parametrize("do", ["backtrack", "leave a process and hang"])
def test_nothing_outlives_a_runner_that_is_killed(
    queue: Queue, run: Run, tmp_path: Path, do: str
) -> None:
    # https://github.com/Graphify-Labs/graphify/issues/3397
    runner = run("--handlers", "tests.runner.ordeals")
    file = tmp_path / "pids"
    queue.submit("process", do=do, file=str(file))
    [pid] = wait_until(lambda: pids(file))
    runner.kill()
    wait_until(lambda: not is_alive(pid))


@pytest.mark.parametrize("kind", ["thread", "process", "async"])
def test_a_process_that_a_handler_forks_ends_when_it_is_told_to(
    queue: Queue, run: Run, kind: str
) -> None:
    # https://github.com/procrastinate-org/procrastinate/issues/1062
    run("--handlers", "tests.runner.ordeals")
    task = queue.submit(kind, do="terminate a fork")
    wait_until(lambda: queue.outcomes(task))
    assert queue.history(task)[0].message is None
    assert queue.outcomes(task) == ["SUCCEEDED"]


@pytest.mark.parametrize("kind", ["thread", "process", "async"])
def test_each_attempt_has_a_context_of_its_own(queue: Queue, start: Start, kind: str) -> None:
    # https://github.com/codecov/worker/pull/834
    start(handlers=handlers, concurrency=1)
    tasks = [queue.submit(kind, do="tell the context") for _ in range(3)]
    wait_until(lambda: all(queue.outcomes(task) for task in tasks))
    assert [queue.history(task)[0].message for task in tasks] == [None] * 3
