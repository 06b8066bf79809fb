"""What a claim costs while there is more and more that it need not look at."""

from collections.abc import Sequence
from typing import Final, get_args

from tests.bench.case import Case, Miscounted, Options, load
from tests.bench.contender import Connection, Drains, Grows, Pile
from tests.bench.explained import Cost, explain, summary
from tests.bench.figures import Figures
from tests.bench.payloads import payloads
from tests.bench.stage import Stage
from tests.bench.workloads.drain_sql import drain_all

SIZES: Final = (1_000, 100_000, 1_000_000, 10_000_000)
BATCH: Final = 10
CLAIMS: Final = 100
WARM_UP: Final = 10
QUEUES: Final = 1_000
ATTEMPTS: Final = 200
CLAIMERS: Final = {2: 20_000, 64: 20_000}


def tables(options: Options) -> Sequence[Case]:
    """A thousand and more dead, scheduled and succeeded tasks beside those that are due."""

    def case(pile: Pile) -> Case:
        def run(contender: Grows, stage: Stage) -> Figures:
            return _pile_up(contender, stage, pile, [n for n in SIZES if n <= options.rows])

        return Case("growth, tables", f"up to {options.rows:,} {pile}", (Grows,), run)

    return [case(pile) for pile in get_args(Pile)]


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


def _pile_up(contender: Grows, stage: Stage, pile: Pile, sizes: Sequence[int]) -> Figures:
    """Measure claims at each size, one after the other in one database."""
    extra: dict[str, float] = {}
    there = 0
    for size in sizes:
        with stage.session() as connection:
            contender.pile_up(connection, pile, size - there)
            there = size
            contender.submit_many(connection, "no-op", payloads(BATCH * (CLAIMS + WARM_UP)))
            connection.execute("vacuum analyze")
            _claims(contender, connection, (), WARM_UP)
            stage.meter.begin(stage.name)
            costs = _claims(contender, connection, (), CLAIMS)
            if any(cost.rows != BATCH for cost in costs):
                raise Miscounted("a claim missed a task")
            extra |= summary(costs, f"claim beside {size:,} {pile}")
    for unit in ("ms", "buffers"):
        fewest, most = (extra[f"claim beside {n:,} {pile}, {unit}"] for n in (sizes[0], sizes[-1]))
        extra[f"beside {sizes[-1]:,} ÷ beside {sizes[0]:,}, {unit}"] = most / fewest
    return stage.meter.end(BATCH * CLAIMS, **extra)  # beside the most


def _claims(
    contender: Grows, connection: Connection, queues: Sequence[str], count: int
) -> list[Cost]:
    """Claim so often, and complete each time what is held."""
    costs: list[Cost] = []
    for _ in range(count):
        costs.append(explain(connection, contender.claim_query(BATCH, queues)))
        connection.execute(contender.report_query(failed=False).encode())
    return costs
