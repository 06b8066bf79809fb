"""oban for Python, with its own pool and uvloop, as its command has them.

Completions are acknowledged in batches with each fetch. Retries come at once; a stager moves them
back, here every 20 ms instead of every second. It keeps every error of a job in one array.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import uvloop
from oban import Oban, worker
from oban.schema import install

from tests.bench.peer_process import ATTEMPTS, KINDS, QUEUE, execute, serve

STAGE_SECONDS = 0.02


def _worker(kind: str) -> Any:
    async def process(self: Any, job: Any) -> None:
        await execute(kind, job.args["payload"], job.attempt)

    def backoff(self: Any, job: Any) -> int:
        return 0

    members = {"process": process, "backoff": backoff, "__module__": __name__}
    return worker(queue=QUEUE, max_attempts=ATTEMPTS)(type(kind, (), members))


WORKERS = {kind: _worker(kind) for kind in KINDS}


class ObanJobs:
    """A worker class for each kind of task."""

    async def install(self) -> None:
        pool = await Oban.create_pool("postgresql://")
        await install(pool)
        await pool.close()

    async def connect(self, sessions: int) -> None:
        self._pool = await Oban.create_pool(
            "postgresql://", min_size=sessions, max_size=sessions + 8
        )
        self._oban = Oban(pool=self._pool)

    async def submit(self, work: str, payload: str) -> None:
        await self._oban.enqueue(WORKERS[work].new({"payload": payload}))

    async def submit_many(self, work: str, payloads: Sequence[str]) -> None:
        await self._oban.enqueue_many(WORKERS[work].new({"payload": p}) for p in payloads)

    async def run(self, work: str, concurrency: int) -> None:
        oban = Oban(
            pool=self._pool, queues={QUEUE: concurrency}, stager={"interval": STAGE_SECONDS}
        )
        async with oban:
            await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(ObanJobs()))
