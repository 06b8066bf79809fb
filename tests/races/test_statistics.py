"""Statistics that were taken when the tables had one row: no call takes more than its limit."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.races.conftest import OpenSession
from tests.races.sessions import Session

TABLES = ("task", "due", "lease", "dead", "attempt", "dedupe", "redrive_run", "queue")
CALLS_FOR_A_CACHED_PLAN = 7


class Case(NamedTuple):
    """A call that takes at most three, how many it says it took, and what makes work for it."""

    take: Callable[[Session], int]
    prepare: Callable[[Session, int], None]
    settings: str = "{}"


def ready(session: Session, count: int) -> None:
    session.submit_many([{}] * count)


def past_deadline(session: Session, count: int) -> None:
    ready(session, count)
    session.execute("update rdq.due set give_up_at = clock_timestamp()")


def expired(session: Session, count: int) -> None:
    ready(session, count)
    session.claim(count)
    session.expire_leases()


def succeeded(session: Session, count: int) -> None:
    ready(session, count)
    session.report(session.claim(count))


def dead(session: Session, count: int) -> None:
    ready(session, count)
    claims = session.claim(count)
    session.report(claims, [{"class": "PERMANENT"}] * len(claims))


def in_a_redrive(session: Session, count: int) -> None:
    dead(session, count)
    session.leave_a_redrive_to_the_sweeps()


CASES = {
    "claim": Case(lambda s: len(s.claim(3)), ready),
    "claim_from_two_queues": Case(
        lambda s: len(s.rows("select * from rdq.claim('{q,other}', 'worker', 3)")), ready
    ),
    "claim_of_expired": Case(lambda s: len(s.claim(3)), expired),
    "reclaim": Case(lambda s: len(s.reclaim(3)), expired),
    "tick_reclaims": Case(lambda s: s.tick(3)[0], expired),
    "tick_gives_up": Case(lambda s: s.tick(3)[1], past_deadline),
    "tick_redrives": Case(lambda s: s.tick(3)[2], in_a_redrive),
    "tick_purges_dead": Case(lambda s: s.tick(3)[3], dead, '{"keep_dead": 0}'),
    "tick_purges_succeeded": Case(lambda s: s.tick(3)[3], succeeded, '{"keep_succeeded": 0}'),
    "purge_where": Case(lambda s: s.purge_where(3), dead),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_call_takes_no_more_than_its_limit_when_the_statistics_are_stale(
    first: Session, open_session: OpenSession, case: Case
) -> None:
    first.execute("select rdq.alter_queue('q', %s::jsonb)", case.settings)
    first.execute("select rdq.create_queue('other')")
    for table in TABLES:
        first.execute(f"alter table rdq.{table} set (autovacuum_enabled = off)")
    warmed = open_session()
    for _ in range(CALLS_FOR_A_CACHED_PLAN):
        case.prepare(first, 1)
        for table in TABLES:
            first.execute(f"analyze rdq.{table}")
        case.take(warmed)
    for count in (61, 5000):
        case.prepare(first, count)
        assert case.take(warmed) == 3
        assert case.take(open_session()) == 3
