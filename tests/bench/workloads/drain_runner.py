"""Ready no-op tasks, through worker processes."""

from collections.abc import Sequence
from typing import Any

from tests.bench.case import Case, Options, run_workers
from tests.bench.contender import Work, Works
from tests.bench.figures import Figures
from tests.bench.peer import Peer
from tests.bench.stage import Stage

TASKS = 10_000
PAIR_TASKS = 50_000


def cases(options: Options) -> Sequence[Case]:
    """One process: threads as many as by default, and more; coroutines. Two with coroutines."""

    def case(
        variant: str,
        work: Work,
        concurrency: int,
        workers: int = 1,
        requires: tuple[type[Any], ...] = (Works,),
    ) -> Case:
        tasks = options.tasks or (TASKS if workers == 1 else PAIR_TASKS)

        def run(contender: Works | Peer, stage: Stage) -> Figures:
            return run_workers(contender, stage, work, concurrency, tasks, workers)

        return Case("drain, worker", variant, requires, run)

    return [
        case("8 threads", "no-op", 8),
        case("100 threads", "no-op", 100),
        case("100 coroutines", "no-op async", 100),
        case("2 processes, 100 coroutines each", "no-op async", 100, 2, (Works, Peer)),
    ]
