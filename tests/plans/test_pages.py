"""What a call costs is what it does, whatever else is in the tables and in their statistics."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.plans import crowd, pages
from tests.plans.calls import Caller, Cost

BATCH = 10
CALLS_FOR_A_CACHED_PLAN = 7

Connect = Callable[[], psycopg.Connection[Any]]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_calls_touch_a_bounded_number_of_pages_beside_millions_of_dead_and_future_tasks(
    db: psycopg.Connection[Any], connect: Connect
) -> None:
    crowd.create_queue(db)
    warmed = Caller(connect())
    warm(warmed, db)
    # The worst that a queue can have: gathered when it was drained, they say that it has no row.
    crowd.empty(db)
    crowd.analyze(db)
    warm(warmed, db)
    crowd.empty(db)
    crowd.fill(db)
    costs = {"statistics of the drained queue": measure(warmed, connect, db)}
    [sent] = db.execute("select sent from rdq.redrive_where('q', 'rare')").fetchall()
    assert sent == (5000,)
    costs["after a bulk redrive"] = measure(warmed, connect, db)
    crowd.analyze(db)
    costs["after analyze"] = measure(warmed, connect, db)
    excess = {
        f"{cost.call} of {cost.rows}, {plans}, {state}": f"{cost.pages} > {cost.bound}"
        for state, measured in costs.items()
        for plans, day in measured.items()
        for cost in day
        if cost.pages > cost.bound
    }
    assert not excess


def warm(caller: Caller, db: psycopg.Connection[Any]) -> None:
    """Let a session cache its plans while there is hardly anything in the tables."""
    for _ in range(CALLS_FOR_A_CACHED_PLAN):
        db.execute("select rdq.submit('q', 'h', 'payload'::text)")
        for _ in caller.day(batch=1):
            pass


def measure(warmed: Caller, connect: Connect, db: psycopg.Connection[Any]) -> dict[str, list[Cost]]:
    """Call everything: with old plans, and in a new session that has seen the catalogue."""
    # What the idle session has touched is reported now, and not while another one is measured.
    pages.so_far(db)
    new = Caller(connect())
    list(new.day(BATCH))
    days = {"old plans": list(warmed.day(BATCH)), "new plans": list(new.day(BATCH))}
    for day in days.values():
        rows = {cost.call: cost.rows for cost in day}
        for call in ("claim", "heartbeat", "report", "late report", "release", "reclaim"):
            assert rows[call] == BATCH, (call, rows)
        assert rows["dead_letters"] == 100
    return days
