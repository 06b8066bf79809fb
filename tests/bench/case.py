"""A case is one variant of a workload; what it takes to run it once with one contender."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.bench.contender import ATTEMPTS, Contender, Submits, Work, Works
from tests.bench.figures import Figures
from tests.bench.payloads import batches, payloads
from tests.bench.peer import Peer
from tests.bench.stage import Stage, wait_for

LOAD_BATCH: Final = 1000
READY_SECONDS: Final = 30.0


class Miscounted(Exception):
    """A contender has not done what it was measured for."""


@dataclass(frozen=True)
class Options:
    """What the command line says about all workloads.

    :param tasks: another number of tasks than the workload's own.
    :param seconds: another duration than the workload's own.
    :param rows: of the largest table that a contender shall claim from.
    """

    tasks: int | None = None
    seconds: float | None = None
    rows: int = 1_000_000


@dataclass(frozen=True)
class Case:
    """A variant of a workload.

    :param requires: the protocols of the contenders that take part; one of them is enough.
    :param run: measures one of them, on a fresh database.
    :param peers: only these of other projects take part, unless some are named. None: all.
    """

    workload: str
    variant: str
    requires: tuple[type[Any], ...]  # protocols; type[Contender] would mean what one can call
    run: Callable[[Any, Stage], Figures]
    peers: tuple[str, ...] | None = None

    def takes(self, contender: Contender, named: Sequence[str]) -> bool:
        """Tell whether a contender takes part, where these were named on the command line."""
        if not isinstance(contender, self.requires) or (named and contender.name not in named):
            return False
        return (
            bool(named)
            or self.peers is None
            or not isinstance(contender, Peer)
            or (contender.name in self.peers)
        )


Cases = Callable[[Options], Sequence[Case]]
"""The cases of a workload."""


def load(contender: Submits, stage: Stage, work: Work, texts: Sequence[str]) -> None:
    """Submit tasks in bulk."""
    with stage.session() as connection:
        for batch in batches(texts, LOAD_BATCH):
            contender.submit_many(connection, work, batch)


def submit_singly(
    contender: Submits, stage: Stage, work: Work, texts: Sequence[str], sessions: int
) -> None:
    """Submit tasks one a transaction, with so many sessions at once."""

    def submit(mine: Sequence[str]) -> None:
        with stage.session() as connection:
            for text in mine:
                contender.submit(connection, work, text)

    with ThreadPoolExecutor(sessions) as pool:
        list(pool.map(submit, [texts[n::sessions] for n in range(sessions)]))


def run_workers(
    contender: Works | Peer, stage: Stage, work: Work, concurrency: int, tasks: int, workers: int
) -> Figures:
    """Measure workers, each a process, until the last success; with payloads of 200 bytes."""
    if isinstance(contender, Peer):
        return _run_peer(contender, stage, work, concurrency, tasks, workers)
    return run_worker(contender, stage, work, concurrency, payloads(tasks), workers=workers)


def run_worker(
    contender: Works,
    stage: Stage,
    work: Work,
    concurrency: int,
    texts: Sequence[str],
    watch: Callable[[int], None] | None = None,
    workers: int = 1,
    **options: str,
) -> Figures:
    """Measure workers from the moment at which all tasks are there to that of the last success.

    The workers have started and wait; the tasks come to be in one commit.

    :param watch: is called with the first worker's process id, right after the commit.
    :raises Miscounted: handlers ran more or less often than they should have.
    """
    with ExitStack() as stack:
        processes = [
            stack.enter_context(contender.worker(stage, work, concurrency, **options))
            for _ in range(workers)
        ]
        connection = stack.enter_context(stage.session(autocommit=False))
        wait_for(stage, contender.ready(workers), READY_SECONDS)
        for batch in batches(texts, LOAD_BATCH):
            contender.submit_many(connection, work, batch)
        stage.meter.begin(stage.name)
        connection.commit()
        if watch:
            watch(processes[0].pid)
        wait_for(stage, contender.drained)
        figures = stage.meter.end(len(texts))
        if work != "mostly":
            check_executions(contender.executions(connection), work, len(texts))
        return figures


def _run_peer(
    peer: Peer, stage: Stage, work: Work, concurrency: int, tasks: int, workers: int
) -> Figures:
    """Measure another project's workers.

    Their processes have started, and have what connections they can have; the tasks are there.
    Then they are told to work. The time counts from the moment at which the first handler begins:
    what it takes to start is no part of it, though its processor time is.
    """
    tasks = peer.count(tasks)
    with ExitStack() as stack:
        with peer.process(stage, 1) as producer:
            producer.ask("submit_many", work=kind(work), count=tasks, batch=LOAD_BATCH)
        processes = [stack.enter_context(peer.process(stage, 4)) for _ in range(workers)]
        stage.meter.begin(stage.name)
        for process in processes:
            process.tell("work", work=kind(work), concurrency=concurrency)
        for process in processes:
            process.hear()
        wait_for(stage, peer.drained)
        figures = stage.meter.end(tasks)
        answers = [process.ask("executed") for process in processes]
        check_executions(sum(answer["count"] for answer in answers), work, tasks)
        first = min(answer["first"] for answer in answers if answer["first"]) / 1e9
        return replace(figures, seconds=figures.seconds - (first - stage.meter.began))


def kind(work: Work) -> str:
    """Return the name of a kind of task that every contender takes."""
    return work.replace(" ", "-")


def check_executions(executions: int, work: Work, tasks: int) -> None:
    """Compare how often handlers ran with how often they should have.

    :raises Miscounted: it differs.
    """
    expected = tasks * (ATTEMPTS if work in ("storm", "storm async", "doom") else 1)
    if executions != expected:
        raise Miscounted(f"handlers ran {executions} times instead of {expected}")
