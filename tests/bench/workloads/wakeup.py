"""From a submit to the handler's first line, while the worker has nothing to do.

The clock starts before the submit is sent, so its commit to the disk is in it.
"""

import os
import random
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.case import Case
from tests.bench.contender import Works
from tests.bench.figures import Figures
from tests.bench.stage import Stage, wait_for
from tests.bench.work import SOCKET_VARIABLE

TASKS = 300
PAUSE_SECONDS = (0.01, 0.03)
ANSWER_SECONDS = 30.0


def cases(tasks: int | None) -> Sequence[Case]:
    """An idle worker."""

    def run(contender: Works, stage: Stage) -> Figures:
        return _measure(contender, stage, tasks or TASKS)

    return [Case("wake-up", "idle worker", Works, run)]


def _measure(contender: Works, stage: Stage, tasks: int) -> Figures:
    latencies: list[float] = []
    with (
        _listening(stage.folder / "stamps") as listener,
        contender.worker(stage, "stamp", 8),
        stage.session() as connection,
    ):
        wait_for(stage, contender.ready, 30)
        contender.submit(connection, "stamp", "the first one")
        listener.recv(1024)
        stage.meter.begin(stage.name)
        for number in range(tasks):
            time.sleep(random.uniform(*PAUSE_SECONDS))  # the worker goes back to its wait
            began = time.monotonic_ns()
            contender.submit(connection, "stamp", str(number))
            _, stamp = listener.recv(1024).split()
            latencies.append((int(stamp) - began) / 1e6)
        return stage.meter.end(tasks, **_quantiles(latencies))


def _quantiles(milliseconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    return {"p50, ms": cuts[49], "p99, ms": cuts[98], "max, ms": max(milliseconds)}


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    path.unlink(missing_ok=True)
    os.environ[SOCKET_VARIABLE] = str(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.settimeout(ANSWER_SECONDS)
        yield listener
