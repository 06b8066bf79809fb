"""Ready tasks, claimed and completed through SQL by two sessions of psycopg."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.bench.case import Case, Miscounted, Options, check_executions, load
from tests.bench.contender import Drains
from tests.bench.figures import Figures
from tests.bench.payloads import payloads
from tests.bench.stage import Stage

SESSIONS = 2
TASKS = {1: 2_000, 10: 10_000, 100: 50_000}


def cases(options: Options) -> Sequence[Case]:
    """Batches of 1, 10 and 100."""

    def case(batch: int, count: int) -> Case:
        texts = payloads(count)

        def run(contender: Drains, stage: Stage) -> Figures:
            return _drain(contender, stage, batch, texts)

        return Case("drain, SQL", f"batch {batch}", (Drains,), run)

    return [case(batch, options.tasks or count) for batch, count in TASKS.items()]


def drain_all(contender: Drains, stage: Stage, batch: int, sessions: int, tasks: int) -> None:
    """Drain with so many sessions at once.

    :raises Miscounted: it was not this number of tasks.
    """

    def work(_: int) -> int:
        done = 0
        with stage.session() as connection:
            while count := contender.drain(connection, batch):
                done += count
        return done

    with ThreadPoolExecutor(sessions) as pool:
        done = sum(pool.map(work, range(sessions)))
    if done != tasks:
        raise Miscounted(f"{done} tasks were drained of {tasks}")


def _drain(contender: Drains, stage: Stage, batch: int, texts: Sequence[str]) -> Figures:
    extra: dict[str, float] = {}
    with stage.meter.wal(extra, "WAL of the submit, bytes"):
        load(contender, stage, "no-op", texts)
    stage.meter.begin(stage.name)
    drain_all(contender, stage, batch, SESSIONS, len(texts))
    extra = {name: value / len(texts) for name, value in extra.items()}
    figures = stage.meter.end(len(texts), **extra)
    with stage.session() as connection:
        check_executions(contender.executions(connection), "no-op", len(texts))
    return figures
