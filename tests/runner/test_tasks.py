"""What a handler is given."""

from typing import Any
from uuid import UUID

import pytest

from rdq_runner import MalformedPayload, Task


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
