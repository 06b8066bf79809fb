"""A retry storm: each task fails three times with a stack of some twenty lines, then succeeds."""

from collections.abc import Sequence

from tests.bench.case import Case, payloads, run_worker
from tests.bench.contender import Works
from tests.bench.figures import Figures
from tests.bench.stage import Stage

TASKS = 2_000
CONCURRENCY = 100


def cases(tasks: int | None) -> Sequence[Case]:
    """To success, with threads."""
    texts = payloads(tasks or TASKS)

    def run(contender: Works, stage: Stage) -> Figures:
        return run_worker(contender, stage, "storm", CONCURRENCY, texts)

    return [Case("retry storm", f"to success, {CONCURRENCY} threads", Works, run)]
