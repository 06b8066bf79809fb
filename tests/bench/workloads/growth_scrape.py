"""What a scrape of metrics asks of a database with a great many dead and a great many due tasks."""

from collections.abc import Sequence
from typing import Final

from tests.bench.case import Case, Options
from tests.bench.contender import Grows
from tests.bench.explained import explain, summary
from tests.bench.figures import Figures
from tests.bench.payloads import payloads, sizes
from tests.bench.stage import Stage

SCRAPES: Final = 20
BATCH: Final = 10_000


def cases(options: Options) -> Sequence[Case]:
    """As many dead, and as many due."""
    rows = options.rows

    def run(contender: Grows, stage: Stage) -> Figures:
        with stage.session() as connection:
            contender.pile_up(connection, "dead", rows)
            for size in sizes(rows, BATCH):
                contender.submit_many(connection, "no-op", payloads(size))
            connection.execute("vacuum analyze")
            stage.meter.begin(stage.name)
            costs = [explain(connection, contender.stats_query()) for _ in range(SCRAPES)]
        return stage.meter.end(SCRAPES, **summary(costs, "scrape"))

    return [Case("growth, scrape", f"{rows:,} dead, {rows:,} due", (Grows,), run)]
