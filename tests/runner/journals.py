"""Handlers that take a moment, and write into a journal when they began and ended."""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from rdq_runner import Handlers, Permanent, Task

KINDS: Final = ["thread", "process", "async", "transactional"]

handlers = Handlers()


class Execution(NamedTuple):
    """One execution of a handler; it has no end if it was killed."""

    attempt_no: int
    began: float
    ended: float | None


@contextmanager
def noted(task: Task) -> Iterator[float]:
    """Write down an execution; give the seconds that it is to take."""
    order = task.json()
    _write(order["journal"], task, "began")
    try:
        yield random.uniform(0.05, 0.25)
        if order["fails"]:
            raise Permanent("so it was ordered")
    finally:
        _write(order["journal"], task, "ended")


def read(journal: Path) -> dict[UUID, list[Execution]]:
    """Return the executions of each task, in the order in which they began."""
    found: dict[UUID, dict[int, Execution]] = {}
    for line in journal.read_text().splitlines():
        task_id, attempt_no, what, moment = line.split()
        executions = found.setdefault(UUID(task_id), {})
        if what == "began":
            assert int(attempt_no) not in executions, "an attempt is executed once"
            executions[int(attempt_no)] = Execution(int(attempt_no), float(moment), None)
        else:
            begun = executions[int(attempt_no)]
            executions[int(attempt_no)] = begun._replace(ended=float(moment))
    return {task_id: [*executions.values()] for task_id, executions in found.items()}


def _write(journal: str, task: Task, what: str) -> None:
    # One write that appends is whole, from whichever process.
    with Path(journal).open("a") as file:
        file.write(f"{task.id} {task.attempt_no} {what} {time.monotonic()}\n")


@handlers.handler("thread")
def in_thread(task: Task) -> None:
    """Take a moment."""
    with noted(task) as seconds:
        time.sleep(seconds)


handlers.handler("process", isolation="process")(in_thread)


@handlers.handler("async")
async def in_loop(task: Task) -> None:
    """Take a moment."""
    with noted(task) as seconds:
        await asyncio.sleep(seconds)


@handlers.handler("transactional", transactional=True)
def in_transaction(task: Task, connection: psycopg.Connection[Any]) -> None:
    """Take a moment, and leave a trace."""
    with noted(task) as seconds:
        connection.execute("insert into public.trace values (%s)", [task.id])
        time.sleep(seconds)
