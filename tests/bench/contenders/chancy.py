"""chancy: its async executor, and eager polling, which it has for queues that are never empty.

Outcomes are written in batches, here every 20 ms instead of every second: that is a documented
attribute of its worker. A failed job is retried at once and keeps all its tracebacks in one array.
"""

import asyncio
from collections.abc import Sequence

from chancy import Chancy, Job, QueuedJob, Worker
from chancy import Queue as ChancyQueue

from tests.bench.peer_process import ATTEMPTS, KINDS, QUEUE, execute, serve

FLUSH_SECONDS = 0.02
MODULE = "tests.bench.contenders.chancy"


class ChancyJobs:
    """A function for each kind of task, as jobs name functions."""

    def __init__(self) -> None:
        self._chancy = Chancy("", max_connection_pool_size=12)

    async def install(self) -> None:
        async with self._chancy as chancy:
            await chancy.migrate()

    async def connect(self, sessions: int) -> None:
        await self._chancy.pool.open()

    async def submit(self, work: str, payload: str) -> None:
        await self._chancy.push(_job(work, payload))

    async def submit_many(self, work: str, payloads: Sequence[str]) -> None:
        async for _ in self._chancy.push_many([_job(work, payload) for payload in payloads]):
            pass

    async def run(self, work: str, concurrency: int) -> None:
        queue = ChancyQueue(
            QUEUE,
            concurrency=concurrency,
            executor=Chancy.Executor.Async,
            eager_polling=True,
            polling_interval=1,
        )
        await self._chancy.declare(queue, upsert=True)
        worker = Worker(self._chancy, register_signal_handlers=False)
        worker.send_outgoing_interval = FLUSH_SECONDS
        async with worker:
            await worker.wait_for_shutdown()


def _job(work: str, payload: str) -> Job:
    function = f"{MODULE}.{work.replace('-', '_')}"
    return Job(func=function, queue=QUEUE, kwargs={"payload": payload}, max_attempts=ATTEMPTS)


async def no_op_async(*, payload: str, job: QueuedJob) -> None:
    await execute("no-op-async", payload, job.attempts + 1)


async def storm_async(*, payload: str, job: QueuedJob) -> None:
    await execute("storm-async", payload, job.attempts + 1)


async def stamp(*, payload: str, job: QueuedJob) -> None:
    await execute("stamp", payload, job.attempts + 1)


async def sleep(*, payload: str, job: QueuedJob) -> None:
    await execute("sleep", payload, job.attempts + 1)


assert all(kind.replace("-", "_") in globals() for kind in KINDS)

if __name__ == "__main__":
    # Jobs name this module, not __main__: the counts must be of one and the same.
    asyncio.run(serve(ChancyJobs()))
