"""What a claim costs while there is more and more that it need not look at."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, get_args

from tests.bench.case import Case, Miscounted, Options, load
from tests.bench.contender import Connection, Drains, Grows, Pile
from tests.bench.explained import Cost, explain, summary, touched
from tests.bench.figures import Figures
from tests.bench.payloads import payloads
from tests.bench.stage import Stage
from tests.bench.workloads.drain_sql import drain_all

FEW: Final = 1_000
MANY: Final = (100_000, 1_000_000, 10_000_000)
BATCH: Final = 10
CLAIMS: Final = 100
WARM_UP: Final = 10
QUEUES: Final = 1_000
ATTEMPTS: Final = 200
CLAIMERS: Final = {2: 20_000, 64: 20_000}


def tables(options: Options) -> Sequence[Case]:
    """Many dead, scheduled and succeeded tasks beside those that are due, and all three."""
    sizes = [size for size in MANY if size <= options.rows] or [options.rows]

    def case(name: str, piles: Sequence[Pile]) -> Case:
        def run(contender: Grows, stage: Stage) -> Figures:
            extra: dict[str, float] = {}
            for size in sizes:
                figures = _beside_few_and_many(contender, stage, piles, size)
                extra |= figures.extra
            return replace(figures, extra=extra)

        return Case("growth, tables", f"up to {options.rows:,} {name}", (Grows,), run)

    return [*(case(pile, [pile]) for pile in get_args(Pile)), case("of each", get_args(Pile))]


def queues(_: Options) -> Sequence[Case]:
    """Claims from one queue and more of a thousand, with tasks and without."""

    def run(contender: Grows, stage: Stage) -> Figures:
        extra: dict[str, float] = {}
        with stage.session() as connection:
            names = contender.create_queues(connection, QUEUES, WARM_UP * BATCH)
            connection.execute("vacuum analyze")
            _claims(contender, connection, names[-1:], WARM_UP)
            for count in (1, 10, 100, QUEUES):
                costs = _claims(contender, connection, names[:count], WARM_UP)
                extra |= summary(costs, f"claim from {count:,} of {QUEUES:,} queues")
            for name in names:
                while contender.drain_queue(connection, name, 10 * BATCH):
                    pass
            stage.meter.begin(stage.name)
            costs = _claims(contender, connection, names, CLAIMS)
            extra |= summary(costs, f"claim from {QUEUES:,} empty queues")
        return stage.meter.end(CLAIMS, **extra)

    return [Case("growth, queues", f"{QUEUES:,} queues", (Grows,), run)]


def history(_: Options) -> Sequence[Case]:
    """Tasks that fail, and fail again, until each has two hundred attempts."""

    def run(contender: Grows, stage: Stage) -> Figures:
        claims: list[Cost] = []
        reports: list[Cost] = []
        with stage.session() as connection:
            contender.set_policy(
                connection, max_attempts=2 * ATTEMPTS, ambiguous_attempts=2 * ATTEMPTS
            )
            contender.submit_many(connection, "no-op", payloads(BATCH))
            stage.meter.begin(stage.name)
            for _ in range(ATTEMPTS):
                claims.append(explain(connection, contender.claim_query(BATCH)))
                reports.append(explain(connection, contender.report_query(failed=True)))
        if any(cost.rows != BATCH for cost in claims):
            raise Miscounted("a claim missed a task")
        extra = {
            **summary(claims[WARM_UP : 2 * WARM_UP], "claim at attempts 11 to 20"),
            **summary(claims[-WARM_UP:], f"claim at attempt {ATTEMPTS}"),
            **summary(reports[WARM_UP : 2 * WARM_UP], "report at attempts 11 to 20"),
            **summary(reports[-WARM_UP:], f"report at attempt {ATTEMPTS}"),
        }
        return stage.meter.end(BATCH * ATTEMPTS, **extra)

    return [Case("growth, history", f"{ATTEMPTS} attempts a task", (Grows,), run)]


def claimers(options: Options) -> Sequence[Case]:
    """Sessions that claim at once: two, and sixty-four."""

    def case(sessions: int, count: int) -> Case:
        def run(contender: Drains, stage: Stage) -> Figures:
            load(contender, stage, "no-op", payloads(count))
            stage.meter.begin(stage.name)
            drain_all(contender, stage, BATCH, sessions, count)
            return stage.meter.end(count)

        return Case("growth, claimers", f"{sessions} claimers, batch {BATCH}", (Drains,), run)

    return [case(sessions, options.tasks or count) for sessions, count in CLAIMERS.items()]


def _beside_few_and_many(
    contender: Grows, stage: Stage, piles: Sequence[Pile], size: int
) -> Figures:
    """Measure claims from two databases, in turn: beside a thousand, and beside so many."""
    with ExitStack() as stack:
        stages = [stack.enter_context(stage.another()) for _ in (FEW, size)]
        sessions = [stack.enter_context(stage.session()) for stage in stages]
        for connection, count in zip(sessions, (FEW, size), strict=True):
            contender.pile_up(connection, piles, count)
            contender.submit_many(connection, "no-op", payloads(BATCH * (CLAIMS + 2 * WARM_UP)))
            connection.execute("vacuum analyze")
            _claims(contender, connection, (), WARM_UP)
        stage.meter.checkpoint()
        stage.meter.begin(stages[1].name)
        in_turn = [
            [cost for connection in sessions for cost in _claims(contender, connection, (), 1)]
            for _ in range(CLAIMS)
        ]
        if any(cost.rows != BATCH for costs in in_turn for cost in costs):
            raise Miscounted("a claim missed a task")
        figures = stage.meter.end(2 * BATCH * CLAIMS)
        extra = _compared(in_turn, size) | _more_touched(contender, sessions, size)
        return replace(figures, extra=extra)


def _compared(in_turn: Sequence[Sequence[Cost]], size: int) -> dict[str, float]:
    """Return what claims beside few and beside many cost, and their ratios."""
    beside_few, beside_many = zip(*in_turn, strict=True)
    few = summary(beside_few, f"claim beside {FEW:,}")
    many = summary(beside_many, f"claim beside {size:,}")
    ratios = {
        f"beside {size:,} ÷ beside {FEW:,}, {unit}": most / least
        for unit, least, most in zip(("ms", "buffers"), few.values(), many.values(), strict=True)
    }
    return few | many | ratios


def _more_touched(contender: Grows, sessions: Sequence[Connection], size: int) -> dict[str, float]:
    """Return how many pages more a claim touches beside many, by table and index."""
    few, many = (_touched(contender, connection) for connection in sessions)
    return {
        f"beside {size:,}, more buffers of {name}": many[name] - few[name]
        for name in sorted(many, key=lambda name: few[name] - many[name])
        if abs(many[name] - few[name]) >= 1
    }


def _touched(contender: Grows, connection: Connection) -> dict[str, float]:
    """Return how many pages a claim touches, by table and index."""
    before = touched(connection)
    for _ in range(WARM_UP):
        connection.execute(contender.claim_query(BATCH).encode())
    after = touched(connection)
    return {name: (pages - before[name]) / WARM_UP for name, pages in after.items()}


def _claims(
    contender: Grows, connection: Connection, queues: Sequence[str], count: int
) -> list[Cost]:
    """Claim so often, and complete each time what is held."""
    costs: list[Cost] = []
    for _ in range(count):
        costs.append(explain(connection, contender.claim_query(BATCH, queues)))
        connection.execute(contender.report_query(failed=False).encode())
    return costs
