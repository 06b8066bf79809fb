"""A retry storm: each task fails with a stack of some twenty lines, and is retried at once."""

from collections.abc import Sequence
from typing import Any

from tests.bench.case import Case, Options, run_workers
from tests.bench.contender import Work, Works
from tests.bench.figures import Figures
from tests.bench.peer import Peer
from tests.bench.stage import Stage

TASKS = 2_000
CONCURRENCY = 100


def cases(options: Options) -> Sequence[Case]:
    """Three failures and a success, with threads and with coroutines; four, and then it is dead."""
    tasks = options.tasks or TASKS

    def case(variant: str, work: Work, *requires: type[Any]) -> Case:
        def run(contender: Works | Peer, stage: Stage) -> Figures:
            return run_workers(contender, stage, work, CONCURRENCY, tasks, 1)

        return Case("retry storm", variant, requires, run)

    return [
        case(f"to success, {CONCURRENCY} threads", "storm", Works),
        case(f"to success, {CONCURRENCY} coroutines", "storm async", Works, Peer),
        case(f"to death, {CONCURRENCY} threads", "doom", Works),
    ]
