"""From a submit to the handler's first line, while the worker has nothing to do, or much.

The clock starts before the submit is sent, so its commit to the disk is in it.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tests.bench import loops
from tests.bench.case import READY_SECONDS, Case, Options, submit_singly
from tests.bench.contender import Loops, Works
from tests.bench.figures import Figures
from tests.bench.pacer import pacing
from tests.bench.payloads import payloads
from tests.bench.peer import Peer
from tests.bench.stage import Stage, wait_for
from tests.bench.stamps import Stamps, quantiles

TASKS = 300
CALIBRATION_TASKS = 2_000
PAUSE_SECONDS = (0.01, 0.03)
SESSIONS = 4
LOAD_SECONDS = 300.0
SETTLE_SECONDS = 1.0
CONCURRENCY = 8

Submit = Callable[[str], int]
"""Submits a task that stamps its start; returns the time before that."""


def cases(options: Options) -> Sequence[Case]:
    """An idle worker; a loop in one thread; a worker with half the load that it can take."""
    tasks = options.tasks or TASKS

    def idle(contender: Works | Peer, stage: Stage) -> Figures:
        with Stamps(stage.folder) as stamps, _worker(contender, stage) as submit:
            return _measure(stage, stamps, submit, tasks)

    def looped(contender: Loops, stage: Stage) -> Figures:
        with Stamps(stage.folder) as stamps, _loop(contender, stage) as submit:
            return _measure(stage, stamps, submit, tasks)

    def busy(contender: Works, stage: Stage) -> Figures:
        with Stamps(stage.folder) as stamps, _worker(contender, stage) as submit:
            rate = _capacity(contender, stage) / 2
            with pacing(contender, stage, "no-op", rate, LOAD_SECONDS):
                time.sleep(SETTLE_SECONDS)
                figures = _measure(stage, stamps, submit, tasks)
            return replace(figures, extra={"load, tasks/s": rate, **figures.extra})

    return [
        Case("wake-up", "idle worker", (Works, Peer), idle),
        Case("wake-up", "idle loop", (Loops,), looped),
        Case("wake-up", "worker at half load", (Works,), busy),
    ]


def _measure(stage: Stage, stamps: Stamps, submit: Submit, tasks: int) -> Figures:
    submit("the-first-one")
    stamps.wait("the-first-one")
    latencies: list[float] = []
    stage.meter.begin(stage.name)
    for number in range(tasks):
        time.sleep(random.uniform(*PAUSE_SECONDS))  # the worker goes back to its wait
        began = submit(str(number))
        latencies.append((stamps.wait(str(number)) - began) / 1e6)
    return stage.meter.end(tasks, **quantiles(latencies))


@contextmanager
def _worker(contender: Works | Peer, stage: Stage) -> Iterator[Submit]:
    """Run a worker, and what submits to it."""
    if isinstance(contender, Peer):
        with contender.process(stage, 1) as producer, contender.process(stage, 4) as worker:
            worker.ask("work", work="stamp", concurrency=CONCURRENCY)
            yield lambda text: int(producer.ask("one", work="stamp", payload=text)["began"])
        return
    with contender.worker(stage, "stamp", CONCURRENCY):
        wait_for(stage, contender.ready(1), READY_SECONDS)
        with _submitting(contender, stage) as submit:
            yield submit


@contextmanager
def _loop(contender: Loops, stage: Stage) -> Iterator[Submit]:
    """Run a loop as the worker, and what submits to it."""
    with loops.worker(stage, contender.name, CONCURRENCY):
        wait_for(stage, loops.ready(1, contender.claims), READY_SECONDS)
        with _submitting(contender, stage) as submit:
            yield submit


@contextmanager
def _submitting(contender: Works, stage: Stage) -> Iterator[Submit]:
    with stage.session() as connection:

        def submit(text: str) -> int:
            began = time.monotonic_ns()
            contender.submit(connection, "stamp", text)
            return began

        yield submit


def _capacity(contender: Works, stage: Stage) -> float:
    """Return how many single submits a second the worker that runs keeps up with."""
    began = time.monotonic()
    submit_singly(contender, stage, "no-op", payloads(CALIBRATION_TASKS), SESSIONS)
    wait_for(stage, contender.drained)
    return CALIBRATION_TASKS / (time.monotonic() - began)
