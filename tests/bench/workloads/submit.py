"""Submits of 200-byte payloads: one a transaction by four sessions, and in bulk by one."""

from collections.abc import Sequence

from tests.bench.case import LOAD_BATCH, READY_SECONDS, Case, Options, kind, load, submit_singly
from tests.bench.contender import Submits, Works
from tests.bench.figures import Figures
from tests.bench.payloads import payloads
from tests.bench.peer import Peer
from tests.bench.stage import Stage, wait_for

SESSIONS = 4
SINGLE = 8_000
BULK = 50_000


def cases(options: Options) -> Sequence[Case]:
    """Single ones without and with a notice to workers, with a worker that listens; bulk."""
    few, many = options.tasks or SINGLE, options.tasks or BULK

    def quiet(contender: Submits, stage: Stage) -> Figures:
        with stage.session() as connection:
            contender.announce(connection, False)
            try:
                return _single(contender, stage, few)
            finally:
                contender.announce(connection, True)

    def announced(contender: Submits | Peer, stage: Stage) -> Figures:
        if isinstance(contender, Peer):
            return _by_library(contender, stage, "submit", few, sessions=SESSIONS)
        with stage.session() as connection:
            contender.announce(connection, True)
        return _single(contender, stage, few)

    def listening(contender: Works, stage: Stage) -> Figures:
        with contender.worker(stage, "no-op", 8):
            wait_for(stage, contender.ready(1), READY_SECONDS)
            return _single(contender, stage, few)

    def bulk(contender: Submits | Peer, stage: Stage) -> Figures:
        if isinstance(contender, Peer):
            return _by_library(contender, stage, "submit_many", many, batch=LOAD_BATCH)
        texts = payloads(many)
        stage.meter.begin(stage.name)
        load(contender, stage, "no-op", texts)
        return stage.meter.end(many)

    single = f"{SESSIONS} sessions"
    return [
        Case("submit, single", f"{single}, without NOTIFY", (Submits,), quiet),
        Case("submit, single", f"{single}, with NOTIFY", (Submits, Peer), announced),
        Case("submit, single", f"{single}, to a worker that runs them", (Works,), listening),
        Case("submit, bulk", f"{LOAD_BATCH} a call", (Submits, Peer), bulk),
    ]


def _single(contender: Submits, stage: Stage, tasks: int) -> Figures:
    texts = payloads(tasks)
    stage.meter.begin(stage.name)
    submit_singly(contender, stage, "no-op", texts, SESSIONS)
    return stage.meter.end(tasks)


def _by_library(peer: Peer, stage: Stage, do: str, tasks: int, **arguments: int) -> Figures:
    with peer.process(stage, arguments.get("sessions", 1)) as process:
        stage.meter.begin(stage.name)
        process.ask(do, work=kind("no-op async"), count=tasks, **arguments)
        return stage.meter.end(tasks)
