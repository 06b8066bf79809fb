"""Two reporters of the same claims."""

from tests.races.conftest import OpenSession
from tests.races.sessions import Session


def test_two_reports_of_the_same_claims_in_opposite_orders_do_not_deadlock(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    first.submit_many([{}] * 4)
    claims = sorted(first.claim(4))
    holder = open_session()
    with holder.transaction():
        # In the middle, so that whoever does not lock in one order has locked something already.
        holder.execute("select from rdq.lease where task_id = %s for update", claims[1].task_id)
        forward = first.start(first.report, claims)
        forward.wait_until_blocked_by(holder)
        backward = second.start(second.report, claims[::-1])
        backward.wait_until_blocked()
    stale = {task_id: [stale] for task_id, _, stale in forward.result()}
    for task_id, status, is_stale in backward.result():
        assert status == "SUCCEEDED"
        stale[task_id].append(is_stale)
    assert all(sorted(answers) == [False, True] for answers in stale.values())
    assert all(first.outcomes(claim.task_id) == ["SUCCEEDED"] for claim in claims)


def test_a_report_is_stale_when_another_one_of_the_same_claim_was_first(
    first: Session, second: Session
) -> None:
    task_id = first.submit()
    claim = first.claim_one()
    with first.transaction():
        assert first.fail(claim, "PERMANENT") == "DEAD"
        completion = second.start(second.complete, claim)
        completion.wait_until_blocked_by(first)
    assert completion.result() is False
    assert second.outcomes(task_id) == ["FAILED"]
    assert second.status(task_id) == "DEAD"


def test_a_report_counts_once_in_a_batch_that_names_its_claim_twice(first: Session) -> None:
    task_id = first.submit()
    claim = first.claim_one()
    assert first.report([claim, claim]) == [
        (task_id, "SUCCEEDED", False),
        (task_id, "SUCCEEDED", True),
    ]
    assert first.outcomes(task_id) == ["SUCCEEDED"]
