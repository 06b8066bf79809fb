"""pgqueuer: batches of 100, asyncpg, and uvloop as its command has it.

A worker has one connection; submits come from a pool. Completions are buffered and written in
batches; each failure is a statement of its own, which logs its traceback and requeues the job.
"""

from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.executors import DatabaseRetryEntrypointExecutor
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from tests.bench.peer_process import ATTEMPTS, KINDS, execute, serve

BATCH = 100
HEARTBEAT_TIMEOUT = timedelta(seconds=30)


class Pgqueuer:
    """An entrypoint for each kind of task."""

    async def install(self) -> None:
        connection = await asyncpg.connect()
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def connect(self, sessions: int) -> None:
        pool = await asyncpg.create_pool(min_size=sessions, max_size=sessions)
        self._queries = Queries(AsyncpgPoolDriver(pool))

    async def submit(self, work: str, payload: str) -> None:
        await self._queries.enqueue(work, payload.encode())

    async def submit_many(self, work: str, payloads: Sequence[str]) -> None:
        count = len(payloads)
        await self._queries.enqueue([work] * count, [p.encode() for p in payloads], [0] * count)

    async def run(self, work: str, concurrency: int) -> None:
        pgq = PgQueuer(AsyncpgDriver(await asyncpg.connect()))
        for kind in KINDS:
            pgq.entrypoint(
                kind,
                executor_factory=lambda parameters: DatabaseRetryEntrypointExecutor(
                    parameters, max_attempts=ATTEMPTS, initial_delay=timedelta(0)
                ),
            )(_run)
        await pgq.run(batch_size=BATCH, heartbeat_timeout=HEARTBEAT_TIMEOUT)


async def _run(job: Job) -> None:
    await execute(job.entrypoint, (job.payload or b"").decode(), job.attempts + 1)


if __name__ == "__main__":
    uvloop.run(serve(Pgqueuer()))
