"""Handlers that behave as real ones do at their worst. Their payload is a JSON object."""

import asyncio
import gc
import os
import threading
import time
from pathlib import Path

from rdq_runner import Ambiguous, Cancelled, Handlers, Permanent, Task, Transient

handlers = Handlers()

old = Handlers()
"""Those of a release that did not have any of these yet."""


class UnprintableError(Permanent):
    def __str__(self) -> str:
        raise RuntimeError("not even its text")


class LyingError(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise KeyboardInterrupt


@handlers.handler("ok")
def ok(task: Task) -> str:
    """Succeed; what it returns is nobody's business."""
    return "done"


@handlers.handler("raise")
def raise_error(task: Task) -> None:
    """Raise the exception of that name."""
    raise {
        "permanent": Permanent("card refused", detail={"code": 51}),
        "transient": Transient("busy", retry_after=3600),
        "ambiguous": Ambiguous("sent, no answer"),
        "refused": ConnectionRefusedError(111, "Connection refused"),
        "timeout": TimeoutError("timed out"),
        "value": ValueError("invalid literal"),
        "nul": ValueError("a\0b"),
        "surrogate": ValueError("a\ud800b"),
        "huge": ValueError("x"),
        "unprintable": UnprintableError(),
        "lying": LyingError("who?"),
        "cancelled": asyncio.CancelledError(),
        "handed back": Cancelled(),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "generator": GeneratorExit(),
        "memory": MemoryError(),
        "recursion": RecursionError("maximum recursion depth exceeded"),
    }[task.json()["error"]]


@handlers.handler("tell-of-rubbish")
def tell_of_rubbish(task: Task) -> None:
    """Say when the process looks for rubbish, and whether it looks at what was loaded."""
    raise Permanent(f"after {gc.get_threshold()[0]}, kept: {gc.get_freeze_count() > 10_000}")


@handlers.handler("raise-huge")
def raise_huge(task: Task) -> None:
    """Raise with a message of 300 MB."""
    raise ValueError("x" * 300_000_000)


@handlers.handler("parse")
def parse(task: Task) -> None:
    """Read the payload, which may not parse."""
    task.json()


@handlers.handler("vanish")
def vanish(task: Task) -> None:
    """Take the process along, as a lack of memory does: and a neighbour, if it is to have one."""
    neighbour = task.json().get("neighbour")
    if neighbour and task.attempt_no > 1:
        return
    while neighbour and not Path(neighbour).exists():
        time.sleep(0.01)
    os._exit(9)


@handlers.handler("hold")
def hold(task: Task) -> None:
    """Begin, and hold on for as long as a file exists; deaf to a cancellation."""
    order = task.json()
    Path(order["began"]).touch()
    while Path(order["file"]).exists():
        time.sleep(0.01)


@handlers.handler("sleep")
def sleep(task: Task) -> None:
    """Sleep without a break, in C."""
    time.sleep(task.json()["seconds"])


@handlers.handler("block")
async def block(task: Task) -> None:
    """Block the event loop, as a library that knows no coroutines does."""
    time.sleep(task.json()["seconds"])


@handlers.handler("spin")
def spin(task: Task) -> None:
    """Keep the interpreter busy."""
    end = time.monotonic() + task.json()["seconds"]
    while time.monotonic() < end:
        pass


@handlers.handler("finish")
def finish(task: Task) -> None:
    """Be nearly done when the shutdown comes: go on for a moment, and succeed."""
    task.cancellation.wait(60)
    time.sleep(0.5)


@handlers.handler("heed")
def heed(task: Task) -> None:
    """Stop when told to."""
    task.cancellation.wait(60)
    raise Cancelled


@handlers.handler("thread")
def thread(task: Task) -> None:
    """Leave a thread behind that does not let the interpreter end, and hang."""
    threading.Thread(target=time.sleep, args=[600], daemon=False).start()
    time.sleep(600)
