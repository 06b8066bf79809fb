"""A case is one variant of a workload; what it takes to run it once with one contender."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.contender import Submits, Work, Works
from tests.bench.figures import Figures
from tests.bench.stage import Stage, wait_for

PAYLOAD_BYTES: Final = 200
LOAD_BATCH: Final = 1000


@dataclass(frozen=True)
class Case:
    """A variant of a workload.

    :param requires: the protocol of the contenders that take part.
    :param run: measures one of them, on a fresh database.
    """

    workload: str
    variant: str
    requires: type[Any]  # a protocol; type[Contender] would mean a class that one can call
    run: Callable[[Any, Stage], Figures]


Cases = Callable[[int | None], Sequence[Case]]
"""The cases of a workload, with another number of tasks than its own if one is given."""


def payloads(count: int, size: int = PAYLOAD_BYTES) -> list[str]:
    """Return texts of this many bytes, each beginning with its number in twelve digits."""
    return [f"{number:012} ".ljust(size, "x") for number in range(count)]


def load(contender: Submits, stage: Stage, work: Work, texts: Sequence[str]) -> None:
    """Submit tasks in bulk."""
    with stage.session() as connection:
        for batch in batches(texts, LOAD_BATCH):
            contender.submit_many(connection, work, batch)


def run_worker(
    contender: Works,
    stage: Stage,
    work: Work,
    concurrency: int,
    texts: Sequence[str],
    watch: Callable[[int], None] | None = None,
    **options: str,
) -> Figures:
    """Measure a worker from the moment at which all tasks are there to that of the last success.

    The worker has started and waits; the tasks come to be in one commit.

    :param watch: is called with the worker's process id, right after the commit.
    """
    with (
        contender.worker(stage, work, concurrency, **options) as process,
        stage.session(autocommit=False) as connection,
    ):
        wait_for(stage, contender.ready, 30)
        for batch in batches(texts, LOAD_BATCH):
            contender.submit_many(connection, work, batch)
        stage.meter.begin(stage.name)
        connection.commit()
        if watch:
            watch(process.pid)
        wait_for(stage, contender.drained)
        return stage.meter.end(len(texts))


def batches(texts: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    """Cut into batches."""
    return (texts[begin : begin + size] for begin in range(0, len(texts), size))
