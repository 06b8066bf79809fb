"""Who counts the queues while others do: one at a time, and nobody waits."""

import time

import psycopg
import pytest

from tests.races.sessions import PATIENCE_SECONDS, Session

REFRESH = "select rdq.refresh_queue_stats()"
SECONDS = "select extract(epoch from took)::float8 from rdq.queue_count"
AGED = """
update rdq.queue_count set took = '1 minute', counted_at = now() - interval '101 minutes'
"""
SLOW = """
create or replace function rdq._slow_count() returns interval
language sql immutable return interval '0'
"""


@pytest.fixture(autouse=True)
def counting_is_slow(first: Session) -> None:
    first.execute(SLOW)
    first.submit_many([{}] * 3)


def due(session: Session) -> int:
    return int(session.value("select due from rdq.recent_queue_stats()"))


def stored(session: Session) -> list[tuple[object, ...]]:
    return session.rows("select counted_at from rdq.queue_count")


def test_of_two_one_counts_and_the_other_does_not_wait(first: Session, second: Session) -> None:
    with first.transaction():
        first.execute(REFRESH)
        counted = stored(first)
        second.execute(REFRESH)
        assert stored(second) == []
        assert due(second) == 3
    assert stored(second) == counted


def test_nobody_waits_for_a_recount_that_replaces_the_last(first: Session, second: Session) -> None:
    first.execute(REFRESH)
    # As if it had taken so long, and been due again.
    first.execute(AGED)
    before = stored(first)
    first.submit()
    with first.transaction():
        first.execute(REFRESH)
        second.execute(REFRESH)
        assert stored(second) == before
        assert due(second) == 3
    assert stored(second) != before
    assert due(second) == 4


def test_the_oldest_task_is_looked_for_from_the_low_water(first: Session) -> None:
    oldest = "select oldest_due_age is not null from rdq.recent_queue_stats()"
    assert first.value(oldest)
    first.execute("select rdq._raise_low_water('{q}', worth => '0')")
    assert first.value(oldest)
    first.execute("update rdq.low_water set due_from = 'infinity'")
    assert not first.value(oldest)
    first.execute("delete from rdq.low_water")


def test_a_wait_for_a_lock_is_not_counting(first: Session, second: Session) -> None:
    with first.transaction():
        first.execute("lock table rdq.dead in access exclusive mode")
        waiting = second.start(second.execute, REFRESH)
        waiting.wait_until_blocked_by(first)
        time.sleep(0.3)
    waiting.result()
    assert second.value(SECONDS) < 0.3


def test_a_lock_that_others_keep_is_not_waited_for(first: Session, second: Session) -> None:
    with first.transaction():
        first.execute("lock table rdq.dead in access exclusive mode")
        began_at = time.monotonic()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute(REFRESH)
        assert time.monotonic() - began_at < PATIENCE_SECONDS / 2
    second.execute(REFRESH)
    assert len(stored(second)) == 1
