"""Whatever a handler does, the attempt is recorded, and its neighbours go on."""

import signal

import pytest

from tests.runner.conftest import Queue, Run, Start

MARK = "\N{REPLACEMENT CHARACTER}"


def test_a_task_that_succeeds_is_one_attempt(queue: Queue, run: Run) -> None:
    run("--name", "runner-1", "--code-version", "v7")
    task = queue.submit("ok")
    queue.wait_for("SUCCEEDED", task)
    [attempt] = queue.history(task)
    assert (attempt.attempt_no, attempt.outcome) == (1, "SUCCEEDED")
    assert (attempt.runner, attempt.code_version) == ("runner-1", "v7")
    assert attempt.started_at <= attempt.finished_at
    assert attempt.error_type is attempt.message is attempt.stack is None


def test_each_failure_is_one_complete_attempt(queue: Queue, run: Run) -> None:
    queue.alter(max_attempts=3, error_rules=[{"match": "ValueError", "class": "TRANSIENT"}])
    run("--name", "runner-1", "--code-version", "v7")
    task = queue.submit("raise", error="value")
    queue.wait_for("DEAD", task)
    assert queue.task(task).dead_reason == "EXHAUSTED"
    attempts = queue.history(task)
    assert [attempt.attempt_no for attempt in attempts] == [1, 2, 3]
    for attempt in attempts:
        assert attempt.outcome == "FAILED"
        assert attempt.error_class == "TRANSIENT"
        assert attempt.error_type == "ValueError"
        assert attempt.message == "invalid literal"
        assert "behaviours.py" in attempt.stack
        assert attempt.stack.endswith("ValueError: invalid literal\n")
        assert (attempt.runner, attempt.code_version) == ("runner-1", "v7")
        assert attempt.started_at <= attempt.finished_at


def test_the_class_of_an_error_decides_what_comes_next(queue: Queue, start: Start) -> None:
    queue.alter(ladder=["1 hour"])
    start()
    expected = {
        "permanent": ("DEAD", "PERMANENT"),
        "transient": ("PENDING", "TRANSIENT"),
        "ambiguous": ("PENDING", "AMBIGUOUS"),
        "refused": ("PENDING", "TRANSIENT"),
        "timeout": ("PENDING", "TRANSIENT"),
        "value": ("PENDING", "AMBIGUOUS"),
        "handed back": ("PENDING", "AMBIGUOUS"),
    }
    tasks = {error: queue.submit("raise", error=error) for error in expected}
    queue.wait_for_outcomes("FAILED", *tasks.values())
    found = {
        error: (queue.status(task), queue.history(task)[0].error_class)
        for error, task in tasks.items()
    }
    assert found == expected


def test_a_handler_may_ask_to_wait_and_tell_more(queue: Queue, start: Start) -> None:
    start()
    busy = queue.submit("raise", error="transient")
    refused = queue.submit("raise", error="permanent")
    queue.wait_for("DEAD", refused)
    [attempt] = queue.history(refused)
    assert attempt.error_type == "rdq_runner.Permanent"
    assert attempt.detail == {"code": 51}
    queue.wait_for_outcomes("FAILED", busy)
    [attempt] = queue.history(busy)
    assert 3599 < (queue.task(busy).next_attempt_at - attempt.finished_at).total_seconds() < 3601


@pytest.mark.parametrize("payload", ["{", "", '"\\ud800', "[" * 50_000 + "]" * 50_000])
def test_a_payload_that_does_not_parse_is_dead_at_once(
    queue: Queue, start: Start, payload: str
) -> None:
    start()
    task = queue.submit_text("parse", payload)
    queue.wait_for("DEAD", task)
    [attempt] = queue.history(task)
    assert attempt.error_type == "rdq_runner.MalformedPayload"
    assert attempt.error_class == "PERMANENT"


def test_a_payload_of_the_wrong_type_is_a_failure_of_the_handler(
    queue: Queue, start: Start
) -> None:
    queue.alter(ladder=["1 hour"])
    start()
    task = queue.submit_text("raise", "null")
    queue.wait_for_outcomes("FAILED", task)
    [attempt] = queue.history(task)
    assert attempt.error_type == "TypeError"


def test_text_that_cannot_be_stored_stops_neither_the_task_nor_its_neighbours(
    queue: Queue, run: Run
) -> None:
    queue.alter(max_attempts=2)
    errors = ["nul", "surrogate", "unprintable", "lying"]
    bad = {error: queue.submit("raise", error=error) for error in errors}
    neighbours = [queue.submit("ok") for _ in range(10)]
    run()
    queue.wait_for("SUCCEEDED", *neighbours)
    queue.wait_for("DEAD", *bad.values())
    assert {attempt.message for attempt in queue.history(bad["nul"])} == {f"a{MARK}b"}
    assert f"a{MARK}b" in queue.history(bad["nul"])[0].stack
    assert {attempt.message for attempt in queue.history(bad["surrogate"])} == {f"a{MARK}b"}
    [attempt] = queue.history(bad["unprintable"])
    assert attempt.error_type == "tests.runner.behaviours.UnprintableError"
    assert attempt.error_class == "PERMANENT"
    assert attempt.message == "details unavailable"
    assert len(queue.history(bad["lying"])) == 2


def test_a_message_of_300_megabytes_is_cut_and_recorded(queue: Queue, run: Run) -> None:
    queue.alter(max_attempts=2)
    run()
    task = queue.submit("raise-huge")
    neighbour = queue.submit("ok")
    queue.wait_for("DEAD", task, seconds=40)
    queue.wait_for("SUCCEEDED", neighbour)
    for attempt in queue.history(task):
        assert attempt.error_type == "ValueError"
        assert attempt.message.startswith("xxx")
        assert attempt.message.endswith("[cut by rdq]")
        assert len(attempt.message.encode()) <= 4096
        assert len(attempt.stack.encode()) <= 65536


def test_a_failure_that_the_database_refuses_is_recorded_without_its_details(
    queue: Queue, start: Start
) -> None:
    queue.db.execute("""
        create function public.refuse() returns trigger language plpgsql as $$
        begin
          raise 'this server has no such character' using errcode = 'untranslatable_character';
        end
        $$
    """)
    queue.db.execute("""
        create trigger refuse before insert on rdq.attempt for each row
        when (new.message like 'card%') execute function public.refuse()
    """)
    refused = queue.submit("raise", error="permanent")
    neighbours = [queue.submit("ok") for _ in range(9)]
    start(concurrency=10)
    queue.wait_for("DEAD", refused)
    queue.wait_for("SUCCEEDED", *neighbours)
    [attempt] = queue.history(refused)
    assert attempt.error_type == "rdq_runner.Permanent"
    assert attempt.error_class == "PERMANENT"
    assert attempt.message == "details unavailable"


def test_no_kind_of_exception_ends_a_runner(queue: Queue, run: Run) -> None:
    queue.alter(ladder=["1 hour"])
    errors = ["cancelled", "exit", "interrupt", "generator", "memory", "recursion"]
    tasks = [queue.submit("raise", error=error) for error in errors]
    # Fewer slots than tasks: one that had died would be missed.
    runner = run("--concurrency", "2")
    queue.wait_for_outcomes("FAILED", *tasks)
    after = queue.submit("ok")
    queue.wait_for("SUCCEEDED", after)
    assert [queue.history(task)[0].error_type for task in tasks] == [
        "asyncio.exceptions.CancelledError",
        "SystemExit",
        "KeyboardInterrupt",
        "GeneratorExit",
        "MemoryError",
        "RecursionError",
    ]
    runner.signal(signal.SIGINT)
    assert runner.ended() == 0


def test_a_log_tells_each_transition_and_no_secret(queue: Queue, run: Run) -> None:
    runner = run("--name", "runner-1")
    task = queue.submit("raise", error="permanent", secret="hunter2")
    queue.wait_for("DEAD", task)
    runner.stop()
    begin, end = (line for line in runner.events if line.get("task") == str(task))
    assert begin["event"] == "attempt begins"
    assert end["event"] == "attempt ended"
    assert (end["queue"], end["handler"], end["attempt"]) == ("q", "raise", 1)
    assert (end["outcome"], end["status"], end["dead_reason"]) == ("FAILED", "DEAD", "PERMANENT")
    assert (end["error_type"], end["error_class"]) == ("rdq_runner.Permanent", "PERMANENT")
    assert end["seconds"] >= 0
    assert "hunter2" not in runner.output
    assert "card refused" not in runner.output
