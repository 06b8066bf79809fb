"""awa: its engine is written in Rust; handlers are coroutines of Python.

200 workers a process, more did not pay. A failure is raised, so that its error is kept. The delay
of a retry cannot be set, but is a function of SQL, which is replaced by one that says none.
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import awa

from tests.bench.peer_process import ATTEMPTS, KINDS, QUEUE, execute, serve

WORKERS = 200
AT_ONCE = """
    create or replace function awa.backoff_duration(attempt smallint, max_attempts smallint)
    returns interval language sql as $$ select interval '0' $$
    """


@dataclass
class Arguments:
    """Of each kind of task."""

    payload: str


class Awa:
    """A kind of job for each kind of task."""

    def __init__(self) -> None:
        self._client = awa.AsyncClient(_url(), 20)

    async def install(self) -> None:
        await awa.migrate(_url())
        await self._client.install_queue_storage()
        async with await self._client.transaction() as transaction:
            await transaction.execute(AT_ONCE)

    async def connect(self, sessions: int) -> None:
        await self._client.health_check()

    async def submit(self, work: str, payload: str) -> None:
        await self._client.insert(Arguments(payload), kind=work, queue=QUEUE, max_attempts=ATTEMPTS)

    async def submit_many(self, work: str, payloads: Sequence[str]) -> None:
        await self._client.enqueue_many_copy(
            [Arguments(p) for p in payloads], kind=work, queue=QUEUE, max_attempts=ATTEMPTS
        )

    async def run(self, work: str, concurrency: int) -> None:
        for kind in KINDS:
            self._client.task(Arguments, kind=kind, queue=QUEUE)(_run)
        await self._client.start([(QUEUE, max(WORKERS, concurrency))], promote_interval_ms=20)
        try:
            await asyncio.Event().wait()
        finally:
            await self._client.shutdown()


async def _run(job: Any) -> None:
    await execute(job.kind, job.args.payload, job.attempt)


def _url() -> str:
    """Return libpq's environment as a URL, which is all that it takes."""
    host, port = os.environ["PGHOST"], os.environ["PGPORT"]
    query = urlencode({"host": host, "port": port})
    return (
        f"postgresql://{os.environ['PGUSER']}@localhost/{quote(os.environ['PGDATABASE'])}?{query}"
    )


if __name__ == "__main__":
    asyncio.run(serve(Awa()))
