"""A sweep that hangs or is killed does not stop the others."""

from uuid import UUID

import psycopg
import pytest

from tests.races.conftest import OpenSession
from tests.races.sessions import Session, refused


def expire(session: Session, count: int) -> None:
    """Let the leases of so many new tasks have ended."""
    session.submit_many([{}] * count)
    assert len(session.claim(count)) == count
    session.expire_leases()


def test_a_sweep_does_not_wait_for_one_that_hangs(first: Session, second: Session) -> None:
    expire(first, 10)
    with first.transaction():
        assert first.tick(6) == (6, 0, 0, 0)
        assert second.tick() == (4, 0, 0, 0)
        # Whoever only claims gets what has been swept, at once.
        assert len(second.claim(10)) == 4
    assert second.value("select count(*) from rdq.attempt where outcome = 'LEASE_EXPIRED'") == 10


def test_leases_that_somebody_is_ending_do_not_hide_those_behind_them(
    first: Session, second: Session
) -> None:
    expire(first, 40)
    with first.transaction():
        assert len(first.reclaim(30)) == 30
        assert len(second.reclaim(1)) == 1
        assert len(second.reclaim(7)) == 7
        assert len(second.reclaim(7)) == 2
        assert second.reclaim(7) == []


def test_a_sweep_takes_over_from_one_that_is_killed(first: Session, second: Session) -> None:
    expire(first, 10)
    first.execute("begin")
    assert first.tick(6) == (6, 0, 0, 0)
    second.execute("select pg_terminate_backend(%s)", first.pid)
    with pytest.raises(psycopg.OperationalError):
        first.execute("commit")
    assert sum(swept for swept, *_ in [second.tick(), second.tick()]) == 10
    assert second.value("select count(*) from rdq.attempt where outcome = 'LEASE_EXPIRED'") == 10


def test_a_sweep_that_is_killed_within_a_redrive_leaves_it_to_the_next(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    task_ids = sorted(first.submit_many([{}] * 4))
    first.bury(*task_ids)
    first.leave_a_redrive_to_the_sweeps()
    holder = open_session()
    with holder.transaction():
        holder.execute("lock table rdq.redriven in share mode")
        sweep = second.start(second.tick)
        sweep.wait_until_blocked_by(holder)
        # Another sweep does not queue up behind it.
        assert first.tick() == (0, 0, 0, 0)
        first.execute("select pg_terminate_backend(%s)", second.pid)
        with refused("57P01"):
            sweep.result()
        assert {first.status(task_id) for task_id in task_ids} == {"DEAD"}
    assert first.tick() == (0, 0, 4, 0)
    assert {first.status(task_id) for task_id in task_ids} == {"PENDING"}
    assert first.rows("select state, sent, skipped from rdq.redrives") == [("DONE", 4, 0)]


def test_a_sweep_needs_no_lock_that_a_forgotten_session_could_hold(
    first: Session, second: Session
) -> None:
    expire(first, 3)
    with first.transaction():
        first.execute(
            "select pg_advisory_xact_lock(rdq._queue_lock_class(), hashtext('q')), "
            "pg_advisory_xact_lock(rdq._queue_lock_class()::bigint)"
        )
        first.execute("select from rdq.queue for update")
        second.execute("set lock_timeout = '50ms'")
        assert second.tick() == (3, 0, 0, 0)
        assert len(second.claim(3)) == 3


def test_a_sweep_that_has_two_redrives_to_carry_on_does_not_deadlock_with_a_purge(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    ids = [UUID(int=number) for number in range(3)]
    for task_id, handler in zip(ids, ("two", "two", "one"), strict=True):
        first.submit(task_id=task_id, handler=handler)
    first.cancel(ids[0])
    first.bury(*ids[1:])
    first.leave_a_redrive_to_the_sweeps("one")
    first.leave_a_redrive_to_the_sweeps("two")
    holder = open_session()
    with holder.transaction():
        # Where a sweep that had sent the last one already would wait for the first.
        holder.execute("select from rdq.dead where task_id = %s for update", ids[0])
        sweep = first.start(first.tick)
        sweep.wait_until_blocked_or_done()
        purge = second.start(second.purge_where, dead_reason="PERMANENT")
        purge.wait_until_blocked_or_done()
    sent, purged = sweep.result()[2], purge.result()
    assert sent >= 1
    assert purged >= 1
