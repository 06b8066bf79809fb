"""Whatever a handler does, however it is run: the attempt is recorded, and the runner goes on."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from rdq_runner import Handlers, Runner, Task, coroutines
from tests.runner.conftest import Queue, Run, Start
from tests.runner.ordeals import KINDS, handlers
from tests.waiting import wait_until

RAISED = {
    "transient": ("rdq_runner.Transient", "TRANSIENT"),
    "permanent": ("rdq_runner.Permanent", "PERMANENT"),
    "ambiguous": ("rdq_runner.Ambiguous", "AMBIGUOUS"),
    "value": ("ValueError", "AMBIGUOUS"),
    "timeout": ("TimeoutError", "TRANSIENT"),
    "exit": ("SystemExit", "AMBIGUOUS"),
    "interrupt": ("KeyboardInterrupt", "AMBIGUOUS"),
    "generator": ("GeneratorExit", "AMBIGUOUS"),
    "cancelled error": ("asyncio.exceptions.CancelledError", "AMBIGUOUS"),
    "handed back": ("rdq_runner.Cancelled", "AMBIGUOUS"),
    "memory": ("MemoryError", "AMBIGUOUS"),
}

Begin = Callable[..., Runner]

each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def begin(queue: Queue, start: Start) -> Begin:
    """Start a runner with the handlers of `ordeals`, and a table that they write to."""
    queue.alter(ladder=["1 hour"])
    queue.db.execute("create table public.trace (task_id uuid, attempt_no integer)")
    return lambda **options: start(**{"handlers": handlers, "concurrency": 2, **options})


def traces(queue: Queue, task: UUID) -> int:
    """Return how many traces a task has left that were not rolled back."""
    row = queue.db.execute("select count(*) from trace where task_id = %s", [task]).fetchone()
    assert row
    return int(row[0])


def only_attempt(queue: Queue, task: UUID) -> Any:
    """Return the one attempt of a task that has had no other."""
    [attempt] = queue.history(task)
    return attempt


def check_that_it_still_works(queue: Queue, kind: str) -> None:
    """Run more tasks than there are slots."""
    after = [queue.submit(kind, do="return") for _ in range(4)]
    queue.wait_for("SUCCEEDED", *after, seconds=40)
    assert {tuple(queue.outcomes(task)) for task in after} == {("SUCCEEDED",)}
    assert sum(traces(queue, task) for task in after) == 4 * ("transactional" in kind)


@each_kind
def test_whatever_is_raised_is_one_failure_of_its_class(
    queue: Queue, begin: Begin, kind: str
) -> None:
    begin()
    tasks = {error: queue.submit(kind, do=error) for error in RAISED}
    queue.wait_for_outcomes("FAILED", *tasks.values())
    attempts = {error: only_attempt(queue, task) for error, task in tasks.items()}
    found = {error: (a.error_type, a.error_class) for error, a in attempts.items()}
    assert found == RAISED
    assert attempts["value"].message == "a\N{REPLACEMENT CHARACTER}b"
    assert "ordeals.py" in attempts["value"].stack
    assert attempts["permanent"].detail == {"code": 51}
    assert not any(traces(queue, task) for task in tasks.values())
    check_that_it_still_works(queue, kind)


@each_kind
@pytest.mark.parametrize("ordeal", ["spin", "sleep"])
def test_a_handler_that_takes_too_long_is_recorded_in_time(
    queue: Queue, begin: Begin, kind: str, ordeal: str
) -> None:
    begin()
    # As many as there are slots: none is left unless they are replaced.
    tasks = [queue.submit(f"{kind}-timed", do=ordeal) for _ in range(2)]
    queue.wait_for_outcomes("FAILED", *tasks)
    check_that_it_still_works(queue, kind)
    for task in tasks:
        attempt = only_attempt(queue, task)
        assert (attempt.error_type, attempt.error_class) == ("rdq_runner.TimedOut", "AMBIGUOUS")
        assert attempt.message == "the handler ran longer than its timeout of 0.5 s"
        assert traces(queue, task) == 0


@pytest.mark.parametrize("kind", ["async", "async-transactional"])
def test_an_async_handler_that_waits_too_long_is_cancelled(
    queue: Queue, begin: Begin, kind: str
) -> None:
    begin()
    task = queue.submit(f"{kind}-timed", do="wait")
    queue.wait_for_outcomes("FAILED", task)
    assert only_attempt(queue, task).error_type == "rdq_runner.TimedOut"
    check_that_it_still_works(queue, kind)


@pytest.mark.parametrize("kind", ["async", "async-transactional"])
def test_a_handler_that_cancels_itself_has_failed(queue: Queue, begin: Begin, kind: str) -> None:
    begin()
    task = queue.submit(kind, do="cancel itself")
    queue.wait_for_outcomes("FAILED", task)
    assert only_attempt(queue, task).error_type == "asyncio.exceptions.CancelledError"
    check_that_it_still_works(queue, kind)


def test_async_handlers_that_take_long_do_not_block_their_loop(
    queue: Queue, start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coroutines, "BEGIN_SECONDS", 0.2)
    own = Handlers()

    @own.handler("sleep")
    async def sleep(task: Task) -> None:
        await asyncio.sleep(0.5)

    start(handlers=own)
    queue.wait_for("SUCCEEDED", *[queue.submit("sleep") for _ in range(5)])
    assert not [message for message in caplog.messages if "event loop" in message]


def test_an_exit_in_what_an_async_handler_left_behind_does_not_end_the_loop(
    queue: Queue, begin: Begin
) -> None:
    begin()
    queue.wait_for("SUCCEEDED", queue.submit("async", do="stray exit"))
    check_that_it_still_works(queue, "async")


@pytest.mark.parametrize(
    ("ordeal", "detail"),
    [
        ("exit at once", {"exit_code": 7}),
        ("exit well", {"exit_code": 0}),
        ("fork and exit", {"exit_code": 3}),
        ("kill", {"signal": "SIGKILL"}),
        ("crash", {"signal": "SIGSEGV"}),
        ("overflow", {"signal": "SIGSEGV"}),
    ],
)
def test_a_child_that_dies_is_recorded_at_once_as_what_it_died_of(
    queue: Queue, begin: Begin, ordeal: str, detail: dict[str, object]
) -> None:
    queue.alter(lease="10 minutes")
    begin()
    task, neighbour = queue.submit("process", do=ordeal), queue.submit("process", do="return")
    queue.wait_for_outcomes("FAILED", task)
    attempt = only_attempt(queue, task)
    assert (attempt.error_type, attempt.error_class) == ("rdq_runner.ChildDied", "AMBIGUOUS")
    assert attempt.detail == detail
    queue.wait_for("SUCCEEDED", neighbour)
    check_that_it_still_works(queue, "process")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "process"])
def test_a_handler_that_ends_the_runner_costs_an_attempt_and_no_effect(
    queue: Queue, run: Run, kind: str
) -> None:
    queue.alter(lease="1 second", ladder=["1 hour"])
    queue.db.execute("create table public.trace (task_id uuid, attempt_no integer)")
    options = ("--handlers", "tests.runner.ordeals", "--poll-interval", "0.2")
    task = queue.submit(kind, do="exit at once")
    assert run(*options).ended() == 7
    run(*options)
    queue.wait_for_outcomes("LEASE_EXPIRED", task)
    assert traces(queue, task) == 0
    check_that_it_still_works(queue, kind)


@each_kind
def test_a_handler_whose_lease_is_lost_is_told_and_leaves_nothing(
    queue: Queue, begin: Begin, kind: str
) -> None:
    queue.alter(lease="3 seconds", ladder=["1 hour"])
    begin()
    # By then a child has started, which takes a while on a busy machine.
    check_that_it_still_works(queue, kind)
    task = queue.submit(kind, do="heed")
    queue.wait_for("IN_FLIGHT", task)
    queue.take_back(task)
    wait_until(lambda: only_attempt(queue, task).late_at)
    attempt = only_attempt(queue, task)
    assert (attempt.outcome, attempt.late_outcome) == ("LEASE_EXPIRED", "RELEASED")
    assert traces(queue, task) == 0
    check_that_it_still_works(queue, kind)


def test_all_kinds_of_handlers_run_at_once(queue: Queue, begin: Begin) -> None:
    begin(concurrency=5)
    tasks = [queue.submit(kind, do="return") for kind in KINDS * 10]
    queue.wait_for("SUCCEEDED", *tasks, seconds=40)
