"""The memory of a worker through a long drain of 1-KiB payloads, of which 5 % fail once."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from tests.bench.case import Case, Options, run_worker
from tests.bench.contender import Works
from tests.bench.figures import Figures
from tests.bench.meter import resident_bytes
from tests.bench.payloads import payloads
from tests.bench.stage import Stage

TASKS = 200_000
PAYLOAD_BYTES = 1024
CONCURRENCY = 100
EVERY_SECONDS = 0.25


def cases(options: Options) -> Sequence[Case]:
    """With threads."""
    count = options.tasks or TASKS

    def run(contender: Works, stage: Stage) -> Figures:
        return _measure(contender, stage, count)

    return [Case("memory", f"{count:,} tasks, {CONCURRENCY} threads", (Works,), run)]


def _measure(contender: Works, stage: Stage, count: int) -> Figures:
    samples: list[int] = []
    ended = threading.Event()

    def sample(pid: int) -> None:
        while not ended.wait(EVERY_SECONDS):
            samples.append(resident_bytes(pid))

    threads: list[threading.Thread] = []

    def watch(pid: int) -> None:
        threads.append(threading.Thread(target=sample, args=[pid], daemon=True))
        threads[0].start()

    texts = payloads(count, PAYLOAD_BYTES)
    try:
        figures = run_worker(contender, stage, "mostly", CONCURRENCY, texts, watch)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    return replace(figures, extra=_quarters(samples))


def _quarters(samples: Sequence[int]) -> dict[str, float]:
    """Return the greatest of each quarter of the time, in MiB."""
    size = max(len(samples) // 4, 1)
    quarters = [samples[begin : begin + size] for begin in range(0, size * 4, size)]
    return {
        f"RSS in quarter {number}, MiB": max(quarter) / 1024**2
        for number, quarter in enumerate(quarters, 1)
        if quarter
    }
