"""The handlers of ``rdq-runner`` in the benchmark."""

import asyncio

from rdq_runner import Handlers, Task
from tests.bench import work

handlers = Handlers()


@handlers.handler("no-op")
def no_op(task: Task) -> None:
    """Do nothing."""


@handlers.handler("no-op-async")
async def no_op_async(task: Task) -> None:
    """Do nothing."""


@handlers.handler("storm")
def storm(task: Task) -> None:
    """Fail three times."""
    work.storm(task.attempt_count)


@handlers.handler("storm-async")
async def storm_async(task: Task) -> None:
    """Fail three times."""
    work.storm(task.attempt_count)


@handlers.handler("doom")
def doom(task: Task) -> None:
    """Fail, however often."""
    work.fail()


@handlers.handler("sleep")
async def sleep(task: Task) -> None:
    """Hold the task for the seconds that the payload has after its number."""
    await asyncio.sleep(float(task.payload.split()[1]))


@handlers.handler("stamp")
def stamp(task: Task) -> None:
    """Say when it began."""
    work.stamp(task.payload)


@handlers.handler("mostly")
def mostly(task: Task) -> None:
    """Fail at the first attempt of each twentieth task."""
    work.mostly(task.attempt_count, int(task.payload[:12]))
