"""What an operator looks at costs what it shows, beside a million dead letters with long stacks."""

from typing import Any, NamedTuple

import psycopg
import pytest

from tests.plans import graves, pages

PAGES_FOR_A_LIST = 3_000
"""A hundred rows, each with its task and its attempts; before them a look at the newest 2,000."""
PAGES_FOR_A_COUNT = 2_500
"""The index of causes, a thousand pages for a million; and the ends of a hundred groups."""
PAGES_FOR_THE_TABLE = 35_000
"""Where no vacuum has seen the table, so that its indexes cannot answer alone."""

LISTS = {
    "": 100,
    "queue => 'q1'": 100,
    "queue => 'rare'": 5,
    "queue => 'empty'": 0,
    "handler => 'handler-7'": 100,
    "handler => 'rare'": 5,
    "handler => 'none'": 0,
    "error_class => 'TRANSIENT'": 100,
    "error_class => 'AMBIGUOUS'": 5,
    "error_class => 'PERMANENT'": 0,
    "dead_reason => 'VANISHED'": 100,
    "dead_reason => 'UNROUTABLE'": 5,
    "dead_reason => 'CANCELLED'": 0,
    "fingerprint => 'cafecafecafec1f3'": 100,
    "fingerprint => 'rare'": 5,
    "fingerprint => '0123456789abcdef'": 0,
    "since => now() - interval '10 days'": 100,
    "since => now() + interval '1 day'": 0,
    "until => now() - interval '10 days'": 100,
    "until => now() - interval '1 year'": 0,
    "handler => 'handler-2', until => now() - interval '20 days'": 100,
    "queue => 'q1', handler => 'handler-2'": 0,
    "queue => 'q1', since => now() + interval '1 day'": 0,
    "queue => 'q1', error_class => 'TRANSIENT', since => now() + interval '1 day'": 0,
    "fingerprint => 'cafecafecafec1f3', since => now() + interval '1 day'": 0,
}
GLOBS = {
    "error_type => '*Error17'": 100,
    "error_type => 'R*e'": 5,
    "error_type => '*none*'": 0,
}


class Look(NamedTuple):
    """A query, how many rows it has, and how many pages it may touch."""

    query: str
    rows: int
    pages: int


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_look_at_a_million_dead_letters_touches_a_bounded_number_of_pages(
    db: psycopg.Connection[Any],
) -> None:
    graves.dig(db)
    long_values_read(db)
    excess = measure(db, "with the statistics of an empty table", looks(PAGES_FOR_THE_TABLE))
    db.execute("vacuum analyze rdq.dead")
    # The plan of a view is the caller's, so it depends on the statistics.
    view = "select * from rdq.dead_letters where queue = 'q1' limit 100"
    filtered = Look(view, 100, PAGES_FOR_A_LIST)
    excess += measure(db, "after vacuum", [*looks(PAGES_FOR_A_COUNT), filtered])
    assert not excess
    assert long_values_read(db) == 0
    db.execute("select rdq.envelope(task_id) from rdq.dead_letters limit 1")
    assert long_values_read(db) > 0


def looks(pages_for_a_count: int) -> list[Look]:
    """All looks; some of them must count."""
    lists = "select * from rdq.dead_letters"
    groups = "select * from rdq.dead_letter_groups"
    return [
        Look(f"{lists} limit 100", 100, PAGES_FOR_A_LIST),
        *[Look(f"{lists}({given})", rows, PAGES_FOR_A_LIST) for given, rows in LISTS.items()],
        *[
            Look(f"{lists}({given})", rows, PAGES_FOR_A_LIST + pages_for_a_count)
            for given, rows in GLOBS.items()
        ],
        Look(f"{groups}()", 100, pages_for_a_count),
        Look(f"{groups}(since => '-infinity')", 100, pages_for_a_count),
        Look(f"{groups}(queue => 'q1')", 100, pages_for_a_count),
        Look(f"{groups}(handler => 'rare')", 1, PAGES_FOR_A_COUNT),
        # A day has 33,000, which are on so many pages of the table and its index.
        Look(f"{groups}(since => now() - interval '1 day')", 100, 2_500),
        Look("select * from rdq.dead_letter_timeline(max_rows => 100)", 100, 1_500),
        Look("select * from rdq.claim('{ready}', 'worker')", 1, 1_000),
    ]


def measure(db: psycopg.Connection[Any], state: str, queries: list[Look]) -> list[str]:
    """Say which looks touch more pages than they may."""
    excess = []
    for look in queries:
        before = pages.so_far(db)
        rows = db.execute(look.query.encode()).fetchall()
        touched = pages.so_far(db) - before
        assert len(rows) == look.rows, look.query
        if touched > look.pages:
            excess.append(f"{look.query} {state}: {touched} > {look.pages}")
    return excess


def long_values_read(db: psycopg.Connection[Any]) -> int:
    """Count the pages of long stacks and payloads that were touched since this was last asked."""
    db.execute("select pg_stat_force_next_flush()")
    [(pages,)] = db.execute(
        "select sum(toast_blks_hit + toast_blks_read)::bigint from pg_statio_user_tables"
        " where schemaname = 'rdq'"
    ).fetchall()
    db.execute("select pg_stat_reset()")
    return int(pages)
