"""A cancel meets a claim, a report, a reclaim, or another cancel of the same task."""

from psycopg import Rollback

from tests.races.sessions import Session, refused


def test_a_cancel_waits_for_a_claim_that_is_under_way_and_takes_it_away(
    first: Session, second: Session
) -> None:
    task_id = first.submit()
    with first.transaction():
        claim = first.claim_one()
        cancel = second.start(second.cancel, task_id)
        cancel.wait_until_blocked_by(first)
    cancel.result()
    assert second.status(task_id) == "DEAD"
    assert first.heartbeat([claim]) == set()
    assert first.complete(claim) is False
    assert second.history(task_id) == [(1, "RELEASED", "SUCCEEDED")]


def test_a_claim_does_not_wait_for_a_cancel(first: Session, second: Session) -> None:
    cancelled, other = first.submit(), first.submit()
    with first.transaction():
        first.cancel(cancelled)
        assert [claim.task_id for claim in second.claim(2)] == [other]
    assert second.claim(2) == []
    assert second.status(cancelled) == "DEAD"


def test_a_task_whose_cancel_is_rolled_back_can_be_claimed(first: Session) -> None:
    task_id = first.submit()
    with first.transaction():
        first.cancel(task_id)
        raise Rollback
    assert first.claim_one().task_id == task_id


def test_a_cancel_that_comes_upon_a_completion_changes_nothing(
    first: Session, second: Session
) -> None:
    task_id = first.submit()
    claim = first.claim_one()
    with first.transaction():
        first.complete(claim)
        cancel = second.start(second.cancel, task_id)
        cancel.wait_until_blocked_by(first)
    with refused("RD004"):
        cancel.result()
    assert second.status(task_id) == "SUCCEEDED"
    assert second.value("select count(*) from rdq.audit where action = 'cancel'") == 0


def test_a_completion_that_comes_upon_a_cancel_is_stale_and_noted_late(
    first: Session, second: Session
) -> None:
    task_id = first.submit()
    claim = second.claim_one()
    with first.transaction():
        first.cancel(task_id)
        completion = second.start(second.complete, claim)
        completion.wait_until_blocked_by(first)
    assert completion.result() is False
    assert second.history(task_id) == [(1, "RELEASED", "SUCCEEDED")]
    assert second.status(task_id) == "DEAD"


def test_a_cancel_follows_a_task_that_fails_meanwhile(first: Session, second: Session) -> None:
    task_id = first.submit()
    claim = first.claim_one()
    with first.transaction():
        assert first.fail(claim) == "PENDING"
        cancel = second.start(second.cancel, task_id)
        cancel.wait_until_blocked_by(first)
    cancel.result()
    assert second.status(task_id) == "DEAD"
    assert second.outcomes(task_id) == ["FAILED"]


def test_a_cancel_follows_a_task_whose_lease_a_heartbeat_extends(
    first: Session, second: Session
) -> None:
    task_id = first.submit()
    claim = first.claim_one()
    with first.transaction():
        first.heartbeat([claim])
        cancel = second.start(second.cancel, task_id)
        cancel.wait_until_blocked_by(first)
    cancel.result()
    assert second.status(task_id) == "DEAD"


def test_of_two_cancels_one_is_told_that_the_task_is_dead(first: Session, second: Session) -> None:
    task_id = first.submit()
    with first.transaction():
        first.cancel(task_id)
        cancel = second.start(second.cancel, task_id)
        cancel.wait_until_blocked_by(first)
    with refused("RD004"):
        cancel.result()
    assert second.value("select count(*) from rdq.audit where action = 'cancel'") == 1
