"""Handlers that end as their payload says."""

from pathlib import Path

from rdq_runner import Ambiguous, Handlers, Permanent, Task, Transient
from tests.waiting import wait_until

handlers = Handlers()


@handlers.handler("ok")
def ok(task: Task) -> None:
    """Succeed."""


@handlers.handler("flaky")
def flaky(task: Task) -> None:
    """Fail once."""
    if task.attempt_no == 1:
        raise Transient("try again")


@handlers.handler("fail")
def fail(task: Task) -> None:
    """Fail with the class in the payload; the message is a secret."""
    kinds = {"TRANSIENT": Transient, "PERMANENT": Permanent, "AMBIGUOUS": Ambiguous}
    raise kinds.get(task.json()["class"], ValueError)("s3cret")


@handlers.handler("hold")
def hold(task: Task) -> None:
    """Begin, and hold on until a file is gone; deaf to a cancellation."""
    order = task.json()
    Path(order["began"]).touch()
    wait_until(lambda: not Path(order["file"]).exists(), 60)
