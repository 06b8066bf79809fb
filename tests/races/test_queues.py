"""A queue is dropped while somebody submits to it or alters it."""

import pytest
from psycopg import IsolationLevel, Rollback

from tests.races.sessions import Session, refused


@pytest.fixture(autouse=True)
def other(first: Session) -> None:
    """The queue that the tests drop."""
    first.execute("select rdq.create_queue('other')")


def drop(session: Session) -> None:
    session.execute("select rdq.drop_queue('other')")


def test_a_queue_is_not_dropped_while_a_submit_to_it_is_under_way(
    first: Session, second: Session
) -> None:
    with first.transaction():
        task_id = first.submit(queue="other")
        with refused("RD004"):
            drop(second)
    with refused("RD004"):
        drop(second)
    assert second.status(task_id) == "PENDING"


def test_a_queue_can_be_dropped_after_a_submit_that_was_rolled_back(
    first: Session, second: Session
) -> None:
    with first.transaction():
        first.submit(queue="other")
        raise Rollback
    drop(second)


def test_a_submit_waits_for_a_drop_and_is_refused(first: Session, second: Session) -> None:
    with first.transaction():
        drop(first)
        submit = second.start(second.submit, queue="other")
        submit.wait_until_blocked_by(first)
    with refused("RD001"):
        submit.result()


def test_a_submit_waits_for_a_drop_that_is_rolled_back_and_is_taken(
    first: Session, second: Session
) -> None:
    with first.transaction():
        drop(first)
        submit = second.start(second.submit, queue="other")
        submit.wait_until_blocked_by(first)
        raise Rollback
    assert second.status(submit.result()) == "PENDING"


def test_a_submit_to_another_queue_does_not_wait_for_a_drop(
    first: Session, second: Session
) -> None:
    with first.transaction():
        drop(first)
        assert second.status(second.submit()) == "PENDING"


def test_a_submit_with_an_old_snapshot_does_not_reach_a_queue_that_is_gone(
    first: Session, second: Session
) -> None:
    second.connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with refused("40001"), second.transaction():
        assert second.value("select count(*) from rdq.task") == 0
        drop(first)
        second.submit(queue="other")
    assert first.value("select count(*) from rdq.task") == 0


def test_altering_a_queue_that_is_being_dropped_does_not_bring_it_back(
    first: Session, second: Session
) -> None:
    with first.transaction():
        drop(first)
        alter = second.start(
            second.execute, "select rdq.alter_queue('other', '{\"notify\": false}')"
        )
        alter.wait_until_blocked_by(first)
    with refused("RD001"):
        alter.result()
    assert second.value("select count(*) from rdq.queues where queue = 'other'") == 0


def test_two_alterations_of_a_queue_both_count(first: Session, second: Session) -> None:
    with first.transaction():
        first.execute("select rdq.alter_queue('other', '{\"max_attempts\": 3}')")
        alter = second.start(
            second.execute, "select rdq.alter_queue('other', '{\"notify\": false}')"
        )
        alter.wait_until_blocked_by(first)
    alter.result()
    query = "select max_attempts, notify from rdq.queues where queue = 'other'"
    assert second.rows(query) == [(3, False)]
