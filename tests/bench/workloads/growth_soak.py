"""A long run with autovacuum on: do the tables and their indexes stay as large as they were?

What has succeeded is kept for a tenth of the run only, so that all tables come to a steady state.
"""

import threading
import time
from collections.abc import Sequence
from typing import Final

from tests.bench.case import READY_SECONDS, Case, Options
from tests.bench.contender import Connection, Grows
from tests.bench.figures import Figures
from tests.bench.payloads import payloads
from tests.bench.stage import Stage, wait_for

SECONDS: Final = 120.0
RATE: Final = 500.0
CHUNK_SECONDS: Final = 0.1
CONCURRENCY: Final = 100
LOOKS: Final = (0.25, 0.5, 0.75, 1.0)


def cases(options: Options) -> Sequence[Case]:
    """At 500 tasks a second, of which one in twenty fails once."""
    seconds = options.seconds or SECONDS

    def run(contender: Grows, stage: Stage) -> Figures:
        return _measure(contender, stage, seconds)

    return [Case("growth, soak", f"{seconds:g} s at {RATE:g} tasks/s", (Grows,), run)]


def _measure(contender: Grows, stage: Stage, seconds: float) -> Figures:
    extra: dict[str, float] = {}
    with stage.session() as connection, contender.worker(stage, "mostly", CONCURRENCY):
        contender.set_policy(connection, keep_succeeded=f"{seconds / 10:g} seconds")
        wait_for(stage, contender.ready(1), READY_SECONDS)
        stage.meter.begin(stage.name)
        began = time.monotonic()
        submitting = threading.Thread(target=_submit, args=[contender, stage, seconds], daemon=True)
        submitting.start()
        for look in LOOKS:
            time.sleep(max(began + look * seconds - time.monotonic(), 0))
            extra |= _sizes(connection, contender.tables(), f"at {look:.0%}")
        submitting.join()
        wait_for(stage, contender.drained)
        return stage.meter.end(int(RATE * seconds), **extra)


def _submit(contender: Grows, stage: Stage, seconds: float) -> None:
    """Submit in small batches, so that one session is enough."""
    size = int(RATE * CHUNK_SECONDS)
    texts = payloads(int(RATE * seconds))
    began = time.monotonic()
    with stage.session() as connection:
        for begin in range(0, len(texts), size):
            time.sleep(max(began + begin / RATE - time.monotonic(), 0))
            contender.submit_many(connection, "mostly", texts[begin : begin + size])


def _sizes(connection: Connection, tables: Sequence[str], when: str) -> dict[str, float]:
    """Return how large the tables and their indexes are now."""
    sizes: dict[str, float] = {}
    for table in tables:
        [(heap, indexes)] = connection.execute(
            "select pg_table_size(%s::regclass), pg_indexes_size(%s::regclass)", [table, table]
        ).fetchall()
        sizes[f"{table} {when}, KiB"] = heap / 1024
        sizes[f"indexes of {table} {when}, KiB"] = indexes / 1024
    return sizes
