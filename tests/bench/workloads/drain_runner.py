"""Ready no-op tasks, through one worker process."""

from collections.abc import Sequence

from tests.bench.case import Case, payloads, run_worker
from tests.bench.contender import Work, Works
from tests.bench.figures import Figures
from tests.bench.stage import Stage

TASKS = 10_000


def cases(tasks: int | None) -> Sequence[Case]:
    """Threads as many as by default, and more; coroutines."""
    texts = payloads(tasks or TASKS)

    def case(variant: str, work: Work, concurrency: int) -> Case:
        def run(contender: Works, stage: Stage) -> Figures:
            return run_worker(contender, stage, work, concurrency, texts)

        return Case("drain, worker", variant, Works, run)

    return [
        case("8 threads", "no-op", 8),
        case("100 threads", "no-op", 100),
        case("100 coroutines", "no-op async", 100),
    ]
