"""What a handler is given."""

import threading
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from rdq_runner import MalformedPayload, Task
from rdq_runner.rows import Claim


def a_task(payload: bytes = b"{}", **fields: Any) -> Task:
    """Return a task such as a handler is given."""
    return Task(id=UUID(int=1), queue="q", handler="charge", payload=payload, **fields)


def test_a_payload_is_read_as_text_or_json() -> None:
    task = a_task('{"name": "Zoë"}'.encode())
    assert task.text == '{"name": "Zoë"}'
    assert task.json() == {"name": "Zoë"}


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"\xff", b"[1,]", b"[" * 50_000 + b"]" * 50_000, b"1" * 5000]
)
def test_a_payload_that_does_not_parse_is_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedPayload):
        a_task(payload).json()


def test_a_payload_that_is_not_text_is_malformed() -> None:
    with pytest.raises(MalformedPayload):
        _ = a_task(b"\xff").text


def test_a_task_does_not_print_what_may_be_secret() -> None:
    printed = repr(a_task(b"secret", headers={"authorization": "secret"}))
    assert "charge" in printed
    assert "secret" not in printed


def test_whoever_waits_for_a_cancellation_is_woken_by_it() -> None:
    task = a_task()
    assert not task.cancellation.wait(0)
    woken: list[bool] = []
    waiting = threading.Thread(target=lambda: woken.append(task.cancellation.wait(10)))
    waiting.start()
    task.cancellation.set()
    waiting.join(10)
    assert woken == [True]
    assert task.cancellation.wait(0)
    assert task.cancelled


def test_what_follows_a_cancellation_is_done_once_and_at_once_if_it_comes_late() -> None:
    task, done = a_task(), list[str]()
    task.cancellation.then(lambda: done.append("before"))
    task.cancellation.set()
    task.cancellation.set()
    task.cancellation.then(lambda: done.append("after"))
    assert done == ["before", "after"]


def test_the_task_of_a_claim_has_all_that_a_task_has() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    claim = Claim(
        UUID(int=1),
        UUID(int=2),
        "q",
        "ok",
        "v2",
        b"x",
        "text/plain",
        None,
        3,
        2,
        1,
        moment,
        None,
        9,
    )
    task = Task.of(claim)
    assert set(vars(task)) == {field.name for field in fields(Task)}
    assert task == Task(
        id=UUID(int=1),
        queue="q",
        handler="ok",
        handler_version="v2",
        payload=b"x",
        content_type="text/plain",
        attempt_no=3,
        attempt_count=2,
        redrive_count=1,
        created_at=moment,
    )
    with pytest.raises(FrozenInstanceError):
        task.queue = "other"  # type: ignore[misc]
