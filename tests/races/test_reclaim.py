"""A reclaimer meets a report, a heartbeat, or another reclaimer of the same lease."""

from typing import Any

from psycopg import Rollback

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session


def expired_claim(worker: Session) -> Claim:
    worker.submit()
    claim = worker.claim_one()
    worker.expire_leases()
    return claim


def test_a_task_that_is_being_completed_is_not_reclaimed(first: Session, second: Session) -> None:
    claim = expired_claim(first)
    with first.transaction():
        assert first.complete(claim)
        assert second.reclaim() == []
    assert second.reclaim() == []
    assert second.outcomes(claim.task_id) == ["SUCCEEDED"]
    assert second.status(claim.task_id) == "SUCCEEDED"


def test_a_completion_that_comes_upon_a_reclaim_is_stale_and_noted_late(
    first: Session, second: Session
) -> None:
    claim = expired_claim(second)
    with first.transaction():
        assert first.reclaim() == [(claim.task_id, "PENDING")]
        completion = second.start(second.complete, claim)
        completion.wait_until_blocked_by(first)
    assert completion.result() is False
    assert second.history(claim.task_id) == [(1, "LEASE_EXPIRED", "SUCCEEDED")]
    assert second.status(claim.task_id) == "PENDING"


def test_a_completion_counts_when_the_reclaim_before_it_is_rolled_back(
    first: Session, second: Session
) -> None:
    claim = expired_claim(second)
    with first.transaction():
        first.reclaim()
        completion = second.start(second.complete, claim)
        completion.wait_until_blocked_by(first)
        raise Rollback
    assert completion.result() is True
    assert second.outcomes(claim.task_id) == ["SUCCEEDED"]


def test_a_failure_that_comes_upon_a_reclaim_spends_nothing_more(
    first: Session, second: Session
) -> None:
    claim = expired_claim(second)
    with first.transaction():
        first.reclaim()
        failure = second.start(second.report, [claim], [{"type": "E", "class": "PERMANENT"}])
        failure.wait_until_blocked_by(first)
    assert failure.result() == [(claim.task_id, "PENDING", True)]
    assert second.history(claim.task_id) == [(1, "LEASE_EXPIRED", "FAILED")]
    assert second.claim_one().attempt_count == 2


def test_a_report_of_a_lost_claim_neither_waits_for_the_next_one_nor_ends_it(
    first: Session, second: Session
) -> None:
    lost = expired_claim(second)
    first.reclaim()
    with first.transaction():
        claim = first.claim_one()
        assert second.complete(lost) is False
    second.execute("set lock_timeout = '50ms'")
    with first.transaction():
        first.execute("select from rdq.lease for update")
        assert second.report([lost], [{"class": "PERMANENT"}]) == [
            (lost.task_id, "IN_FLIGHT", True)
        ]
        assert second.release([lost]) == second.heartbeat([lost]) == set()
    assert first.complete(claim)
    assert first.history(lost.task_id) == [
        (1, "LEASE_EXPIRED", "SUCCEEDED"),
        (2, "SUCCEEDED", None),
    ]


def test_two_reclaimers_record_one_expiry(first: Session, second: Session) -> None:
    claim = expired_claim(first)
    with first.transaction():
        assert first.reclaim() == [(claim.task_id, "PENDING")]
        assert second.reclaim() == []
    assert second.reclaim() == []
    assert second.outcomes(claim.task_id) == ["LEASE_EXPIRED"]


def test_many_reclaimers_and_claimers_record_each_expiry_once(
    first: Session, open_session: OpenSession
) -> None:
    first.submit_many([{}] * 300)
    claims = first.claim(300)
    first.execute("select rdq.pause_queue('q')")
    first.expire_leases()
    reclaimers = [open_session() for _ in range(6)]
    claimers = [open_session() for _ in range(2)]
    reclaims = [r.start(r.reclaim, 7) for r in reclaimers for _ in range(8)]
    passes = [c.start(c.claim, 7) for c in claimers for _ in range(8)]
    taken = [task_id for call in reclaims for task_id, _ in call.result()]
    assert all(call.result() == [] for call in passes)
    taken += [task_id for task_id, _ in first.reclaim()]
    assert len(taken) == len(set(taken))
    assert {claim.task_id for claim in claims} >= set(taken)
    assert first.rows("select outcome, count(*) from rdq.attempt group by outcome") == [
        ("LEASE_EXPIRED", 300)
    ]


def test_a_heartbeat_does_not_wait_for_a_report_that_is_under_way(
    first: Session, second: Session
) -> None:
    first.submit_many([{}, {}])
    ended, running = first.claim(2)
    before = lease_end(second, running)
    second.execute("set lock_timeout = '50ms'")
    with first.transaction():
        first.complete(ended)
        assert running.task_id in second.heartbeat([ended, running])
        assert lease_end(second, running) > before
    assert second.heartbeat([ended, running]) == {running.task_id}


def test_a_report_that_waits_for_a_heartbeat_ends_the_claim(
    first: Session, second: Session
) -> None:
    second.submit_many([{}] * 3)
    completed, failed, released = claims = second.claim(3)
    with first.transaction():
        assert first.heartbeat(claims) == {claim.task_id for claim in claims}
        call = second.start(second.report, [completed, failed], [None, {"class": "TRANSIENT"}])
        call.wait_until_blocked_by(first)
    assert {(status, stale) for _, status, stale in call.result()} == {
        ("SUCCEEDED", False),
        ("PENDING", False),
    }
    with first.transaction():
        first.heartbeat([released])
        release = second.start(second.release, [released])
        release.wait_until_blocked_by(first)
    assert release.result() == {released.task_id}
    assert second.value("select count(*) from rdq.lease") == 0


def test_a_lease_that_is_being_extended_is_not_reclaimed(first: Session, second: Session) -> None:
    claim = expired_claim(first)
    with first.transaction():
        assert first.heartbeat([claim]) == {claim.task_id}
        assert second.reclaim() == []
    assert second.reclaim() == []
    assert first.complete(claim)


def lease_end(session: Session, claim: Claim) -> Any:
    return session.value("select expires_at from rdq.lease where task_id = %s", claim.task_id)
