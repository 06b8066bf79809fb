"""Submits of 200-byte payloads: one a transaction by four sessions, and in bulk by one."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.bench.case import LOAD_BATCH, Case, load, payloads
from tests.bench.contender import Submits, Works
from tests.bench.figures import Figures
from tests.bench.stage import Stage, wait_for

SESSIONS = 4
SINGLE = 8_000
BULK = 50_000


def cases(tasks: int | None) -> Sequence[Case]:
    """Single ones without and with a notice to workers, with a worker that listens; bulk."""
    few, many = payloads(tasks or SINGLE), payloads(tasks or BULK)

    def single(announce: bool) -> Case:
        def run(contender: Submits, stage: Stage) -> Figures:
            with stage.session() as connection:
                contender.announce(connection, announce)
                figures = _single(contender, stage, few)
                contender.announce(connection, True)
            return figures

        variant = f"{SESSIONS} sessions, {'with' if announce else 'without'} NOTIFY"
        return Case("submit, single", variant, Submits, run)

    def listening(contender: Works, stage: Stage) -> Figures:
        with contender.worker(stage, "no-op", 8):
            wait_for(stage, contender.ready, 30)
            return _single(contender, stage, few)

    def bulk(contender: Submits, stage: Stage) -> Figures:
        stage.meter.begin(stage.name)
        load(contender, stage, "no-op", many)
        return stage.meter.end(len(many))

    return [
        single(False),
        single(True),
        Case(
            "submit, single", f"{SESSIONS} sessions, to a worker that runs them", Works, listening
        ),
        Case("submit, bulk", f"{LOAD_BATCH} a call", Submits, bulk),
    ]


def _single(contender: Submits, stage: Stage, texts: Sequence[str]) -> Figures:
    def work(mine: Sequence[str]) -> None:
        with stage.session() as connection:
            for text in mine:
                contender.submit(connection, "no-op", text)

    with ThreadPoolExecutor(SESSIONS) as pool:
        stage.meter.begin(stage.name)
        list(pool.map(work, [texts[n::SESSIONS] for n in range(SESSIONS)]))
        return stage.meter.end(len(texts))
