"""What a scrape of metrics asks of a database with a great many dead and a great many due tasks.

The scrapes come after a count, as all do but the first. The count itself is made after a scrape,
for all runners together, so seldom that it takes a hundredth of one core.
"""

from collections.abc import Sequence
from typing import Final

from tests.bench.case import Case, Options
from tests.bench.contender import Connection, Grows
from tests.bench.explained import Cost, explain, summary
from tests.bench.figures import Figures
from tests.bench.payloads import payloads, sizes
from tests.bench.stage import Stage

SCRAPES: Final = 20
RECOUNTS: Final = 5
BATCH: Final = 10_000


def cases(options: Options) -> Sequence[Case]:
    """As many dead, and as many due."""
    rows = options.rows

    def run(contender: Grows, stage: Stage) -> Figures:
        with stage.session() as connection:
            contender.pile_up(connection, ["dead"], rows)
            for size in sizes(rows, BATCH):
                contender.submit_many(connection, "no-op", payloads(size))
            connection.execute("vacuum analyze")
            stage.meter.begin(stage.name)
            first = _scrape(contender, connection)
            recounts = [_recount(contender, connection) for _ in range(RECOUNTS)]
            scrapes = [_scrape(contender, connection) for _ in range(SCRAPES)]
        return stage.meter.end(
            SCRAPES,
            **summary(scrapes, "scrape"),
            **summary([first], "first scrape"),
            **summary(recounts, "recount"),
        )

    return [Case("growth, scrape", f"{rows:,} dead, {rows:,} due", (Grows,), run)]


def _scrape(contender: Grows, connection: Connection) -> Cost:
    costs = [explain(connection, query) for query in contender.stats_queries()]
    return Cost(*map(sum, zip(*costs, strict=True)))


def _recount(contender: Grows, connection: Connection) -> Cost:
    contender.forget_counts(connection)
    return explain(connection, contender.recount_query())
