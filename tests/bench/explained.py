"""What statements cost on the server, as ``explain (analyze, buffers)`` tells."""

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from tests.bench.contender import Connection


class Cost(NamedTuple):
    """Of one statement, with all that its functions do.

    :param milliseconds: on the server.
    :param buffers: pages touched, in the cache or not.
    :param rows: that it returned.
    """

    milliseconds: float
    buffers: int
    rows: int


def explain(connection: Connection, query: str) -> Cost:
    """Run a statement; return what it cost."""
    [(plans,)] = connection.execute(
        f"explain (analyze, buffers, timing off, format json) {query}".encode()
    ).fetchall()
    plan = plans[0]["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return Cost(float(plans[0]["Execution Time"]), int(buffers), int(plan["Actual Rows"]))


def touched(connection: Connection) -> dict[str, float]:
    """Return how many pages of each table and index were touched up to now, this session's too."""
    connection.execute("select pg_stat_force_next_flush()")
    return dict(
        connection.execute(
            """
            select relname, (heap_blks_hit + heap_blks_read)::float from pg_statio_user_tables
            union all
            select indexrelname, (idx_blks_hit + idx_blks_read)::float from pg_statio_user_indexes
            """
        ).fetchall()
    )


def summary(costs: Iterable[Cost], what: str) -> dict[str, float]:
    """Return the medians, under names that begin with what they are of."""
    known = list(costs)
    return {
        f"{what}, ms": statistics.median(cost.milliseconds for cost in known),
        f"{what}, buffers": statistics.median(cost.buffers for cost in known),
    }
