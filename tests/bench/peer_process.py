"""The process of a contender in Python with a virtual environment of its own.

It does what lines of JSON on its standard input say, and answers each with one on its standard
output. All of it is the library's own way: its submits, its pool, its worker.
"""

import asyncio
import json
import logging
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

from tests.bench import work as works
from tests.bench.payloads import batches, payloads

QUEUE: Final = "bench"
ATTEMPTS: Final = works.FAILURES + 1


class Queue(Protocol):
    """What a contender's module provides."""

    async def install(self) -> None:
        """Install the schema in an empty database, and what queue there must be."""

    async def connect(self, sessions: int) -> None:
        """Open what so many concurrent submits take."""

    async def submit(self, work: str, payload: str) -> None:
        """Submit one task."""

    async def submit_many(self, work: str, payloads: Sequence[str]) -> None:
        """Submit many tasks in one call."""

    async def run(self, work: str, concurrency: int) -> None:
        """Work until cancelled, each handler by `execute`."""


class Executions:
    """Counts what handlers ran, so that the benchmark can see that everything was."""

    count = 0
    first = 0
    """When the first one began, by `time.monotonic_ns`."""

    @classmethod
    def note(cls) -> None:
        """Count one that begins."""
        if not cls.count:
            cls.first = time.monotonic_ns()
        cls.count += 1


async def execute(work: str, payload: str, attempt: int) -> None:
    """Do a task; all of its kinds are known to every contender.

    :param attempt: from 1 on.
    """
    Executions.note()
    if work == "storm-async":
        works.storm(attempt)
    elif work == "stamp":
        works.stamp(payload.encode())
    elif work == "sleep":
        await asyncio.sleep(float(payload.split()[1]))


KINDS: Final = ("no-op-async", "storm-async", "stamp", "sleep")


async def serve(queue: Queue) -> None:
    """Do what each line says until there is no more; nothing is logged."""
    logging.disable()
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    stop = asyncio.create_task(stopped.wait())
    async with asyncio.TaskGroup() as group:
        workers: list[asyncio.Task[None]] = []
        _say({"ready": True})
        while True:
            reading = asyncio.create_task(lines.readline())
            await asyncio.wait([reading, stop], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done() or not reading.result():
                break
            command = json.loads(reading.result())
            if command["do"] == "work":
                running = queue.run(command["work"], command["concurrency"])
                workers.append(group.create_task(running))
                _say({})
            else:
                _say(await _done(queue, command))
        reading.cancel()
        stop.cancel()
        for worker in workers:
            worker.cancel()


async def _done(queue: Queue, command: dict[str, Any]) -> dict[str, Any]:
    what = command["do"]
    if what == "install":
        await queue.install()
    elif what == "connect":
        await queue.connect(command["sessions"])
    elif what == "one":
        began = time.monotonic_ns()
        await queue.submit(command["work"], command["payload"])
        return {"began": began}
    elif what == "submit":
        await _submit(queue, command["work"], payloads(command["count"]), command["sessions"])
    elif what == "submit_many":
        for batch in batches(payloads(command["count"]), command["batch"]):
            await queue.submit_many(command["work"], batch)
    elif what == "pace":
        await _pace(
            queue, command["work"], command["rate"], command["seconds"], command["sessions"]
        )
    elif what == "executed":
        return {"count": Executions.count, "first": Executions.first}
    return {}


async def _submit(queue: Queue, work: str, texts: Sequence[str], sessions: int) -> None:
    async def session(mine: Sequence[str]) -> None:
        for text in mine:
            await queue.submit(work, text)

    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(session(texts[number::sessions]))


async def _pace(queue: Queue, work: str, rate: float, seconds: float, sessions: int) -> None:
    """Submit so many a second, whatever the time that one takes."""
    texts = payloads(int(rate * seconds))
    began = time.monotonic()

    async def session(first: int) -> None:
        for number in range(first, len(texts), sessions):
            await asyncio.sleep(began + number / rate - time.monotonic())
            await queue.submit(work, texts[number])

    async with asyncio.TaskGroup() as group:
        for first in range(sessions):
            group.create_task(session(first))


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)
