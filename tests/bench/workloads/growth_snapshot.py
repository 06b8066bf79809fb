"""Work at a steady rate while a snapshot is held open, so that no dead row can be removed.

Before the steady part and after it comes a burst, with the snapshot held already and still. Some
tasks are held throughout, so that their leases are renewed.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from tests.bench.case import READY_SECONDS, Case, Miscounted, Options, kind, load
from tests.bench.contender import Grows
from tests.bench.figures import Figures
from tests.bench.pacer import SESSIONS, pacing
from tests.bench.payloads import payloads
from tests.bench.peer import Peer
from tests.bench.stage import Stage, wait_for
from tests.bench.stamps import Stamps, quantiles

SECONDS: Final = 60.0
RATE: Final = 500.0
BURST: Final = 5_000
WARM_UP: Final = 1_000
HELD: Final = 50
LEASE_SECONDS: Final = 30
PROBE_SECONDS: Final = 0.05
CONCURRENCY: Final = 150
PARTS: Final = 5
PEERS: Final = ("pgqueuer",)


def cases(options: Options) -> Sequence[Case]:
    """At 500 tasks a second."""
    seconds = options.seconds or SECONDS

    def run(contender: Grows | Peer, stage: Stage) -> Figures:
        with Stamps(stage.folder) as stamps, ExitStack() as stack:
            flow = stack.enter_context(
                _peer_flow(contender, stage)
                if isinstance(contender, Peer)
                else _flow(contender, stage)
            )
            snapshot = stack.enter_context(stage.session(autocommit=False))
            snapshot.execute("set transaction isolation level repeatable read")
            snapshot.execute("select count(*) from pg_class")
            return _measure(flow, contender.claims, stage, stamps, seconds)

    variant = f"held for {seconds:g} s at {RATE:g} tasks/s"
    return [Case("growth, snapshot", variant, (Grows, Peer), run, PEERS)]


class _Flow(NamedTuple):
    """How tasks come to a worker that runs."""

    burst: Callable[[int], None]
    """Submits so many in bulk, and waits until they are done."""
    hold: Callable[[int, float], None]
    """Submits so many that take so many seconds."""
    pace: Callable[[float], None]
    """Submits at the steady rate for so many seconds."""
    probe: Callable[[str], int]
    """Submits one that stamps its start; returns the time before that."""
    executions: Callable[[], int]
    """Returns how often handlers have run."""


def _measure(flow: _Flow, claims: str, stage: Stage, stamps: Stamps, seconds: float) -> Figures:
    extra: dict[str, float] = {}
    tasks = WARM_UP + 2 * BURST + HELD + int(RATE * seconds)
    flow.burst(WARM_UP)
    stage.meter.begin(stage.name)
    extra["burst before, tasks/s"] = _burst(flow)
    flow.hold(HELD, seconds)
    pacing = threading.Thread(target=flow.pace, args=[seconds], daemon=True)
    pacing.start()
    for part in range(1, PARTS + 1):
        before = stage.meter.statements(claims)
        latencies = _probe(flow, stamps, part, seconds / PARTS)
        after = stage.meter.statements(claims)
        tasks += len(latencies)
        calls, milliseconds, rows = (now - then for now, then in zip(after, before, strict=True))
        if part in (1, PARTS):
            extra[f"claimed in part {part}, tasks/s"] = rows / (seconds / PARTS)
            extra[f"claim in part {part}, ms"] = milliseconds / max(calls, 1)
            extra[f"claims in part {part}, ms a task"] = milliseconds / max(rows, 1)
            extra |= quantiles(latencies, f" in part {part}")
    pacing.join()
    extra["burst after, tasks/s"] = _burst(flow)
    figures = stage.meter.end(tasks - WARM_UP, **extra)
    if (executions := flow.executions()) != tasks:
        raise Miscounted(f"handlers ran {executions} times instead of {tasks}")
    return figures


def _burst(flow: _Flow) -> float:
    began = time.monotonic()
    flow.burst(BURST)
    return BURST / (time.monotonic() - began)


def _probe(flow: _Flow, stamps: Stamps, part: int, seconds: float) -> list[float]:
    """Measure latencies for so many seconds."""
    ends = time.monotonic() + seconds
    latencies: list[float] = []
    while time.monotonic() < ends:
        name = f"{part}-{len(latencies)}"
        began = flow.probe(name)
        latencies.append((stamps.wait(name) - began) / 1e6)
        time.sleep(PROBE_SECONDS)
    return latencies


@contextmanager
def _flow(contender: Grows, stage: Stage) -> Iterator[_Flow]:
    worker = contender.worker(stage, "no-op async", CONCURRENCY, lease=str(LEASE_SECONDS))
    with worker, stage.session() as connection, stage.session() as prober:
        wait_for(stage, contender.ready(1), READY_SECONDS)

        def burst(count: int) -> None:
            load(contender, stage, "no-op async", payloads(count))
            wait_for(stage, contender.drained)

        def hold(count: int, seconds: float) -> None:
            contender.submit_many(connection, "sleep", [f"0 {seconds:g}"] * count)

        def probe(text: str) -> int:
            began = time.monotonic_ns()
            contender.submit(prober, "stamp", text)
            return began

        def pace(seconds: float) -> None:
            with pacing(contender, stage, "no-op async", RATE, seconds) as pacer:
                pacer.wait()

        yield _Flow(burst, hold, pace, probe, lambda: contender.executions(connection))


@contextmanager
def _peer_flow(peer: Peer, stage: Stage) -> Iterator[_Flow]:
    with ExitStack() as stack:
        worker, producer, prober = (
            stack.enter_context(peer.process(stage, SESSIONS)) for _ in range(3)
        )
        no_op = kind("no-op async")
        worker.ask("work", work="sleep", concurrency=CONCURRENCY)

        def burst(count: int) -> None:
            producer.ask("submit_many", work=no_op, count=count, batch=1000)
            wait_for(stage, peer.drained)

        def hold(count: int, seconds: float) -> None:
            for _ in range(count):
                producer.ask("one", work="sleep", payload=f"0 {seconds:g}")

        def pace(seconds: float) -> None:
            producer.ask("pace", work=no_op, rate=RATE, seconds=seconds, sessions=SESSIONS)

        def probe(text: str) -> int:
            return int(prober.ask("one", work="stamp", payload=text)["began"])

        yield _Flow(burst, hold, pace, probe, lambda: int(worker.ask("executed")["count"]))
