"""procrastinate, with the psycopg pool that its documentation gives, and its async worker.

Each fetch and each completion is a statement of its own; a retry is put back at once, and no error
is kept. Finished jobs stay, as by default. No log is configured.
"""

import asyncio
from collections.abc import Sequence

from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy

from tests.bench.peer_process import ATTEMPTS, KINDS, QUEUE, execute, serve


class Procrastinate:
    """An app whose connections come from libpq's environment."""

    def __init__(self) -> None:
        self._app = App(connector=PsycopgConnector(min_size=4, max_size=12))
        retry = RetryStrategy(max_attempts=ATTEMPTS, wait=0)
        self._tasks = {
            kind: self._app.task(name=kind, queue=QUEUE, pass_context=True, retry=retry)(_run)
            for kind in KINDS
        }

    async def install(self) -> None:
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    async def connect(self, sessions: int) -> None:
        await self._app.open_async()

    async def submit(self, work: str, payload: str) -> None:
        await self._tasks[work].defer_async(payload=payload)

    async def submit_many(self, work: str, payloads: Sequence[str]) -> None:
        await self._tasks[work].batch_defer_async(*({"payload": text} for text in payloads))

    async def run(self, work: str, concurrency: int) -> None:
        await self._app.run_worker_async(
            queues=[QUEUE], concurrency=concurrency, install_signal_handlers=False
        )


async def _run(context: JobContext, payload: str) -> None:
    await execute(context.job.task_name, payload, context.job.attempts + 1)


if __name__ == "__main__":
    asyncio.run(serve(Procrastinate()))
