"""Callers in stricter isolation levels: they may have to repeat a call, and lose nothing."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

import pytest
from psycopg.errors import SerializationFailure

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session, refused

Result = TypeVar("Result")

SERIALIZATION_FAILURE = "40001"
LEVELS = pytest.mark.parametrize("level", ["repeatable read", "serializable"])


def isolate(session: Session, level: str) -> Session:
    session.execute(f"set default_transaction_isolation = '{level}'")
    return session


def repeated(call: Callable[[], Result]) -> Result:
    """Call until there is no serialization failure; every other error is one."""
    while True:
        try:
            return call()
        except SerializationFailure:
            continue


@LEVELS
def test_workers_and_producers_in_a_stricter_level_lose_nothing(
    open_session: OpenSession, first: Session, level: str
) -> None:
    first.execute("select rdq.alter_queue('q', '{\"notify\": false}')")
    sessions = [isolate(open_session(), level) for _ in range(5)]
    calls = [session.start(work, session) for session in sessions]
    ids = [task_id for call in calls for task_id in call.result()]
    assert len(set(ids)) == len(ids) == 5 * 30
    while claims := first.claim(100):
        first.report(claims)
    assert {first.status(task_id) for task_id in ids} == {"SUCCEEDED"}
    assert first.value("select count(*) from rdq.attempt where outcome = 'FAILED'") == 5 * 10


def work(session: Session) -> list[UUID]:
    """Submit, claim, fail and complete, each repeated where the level makes it necessary."""
    ids = []
    for _ in range(10):
        ids += repeated(lambda: session.submit_many([{}, {}]))
        ids.append(repeated(lambda: submit_in_a_transaction(session)))
        claims: list[Claim] = []
        while not claims:
            claims = repeated(lambda: session.claim(2))
        repeated(partial(session.fail, claims[0]))
        repeated(partial(session.report, claims[1:]))
    return ids


def submit_in_a_transaction(session: Session) -> UUID:
    with session.transaction():
        session.value("select count(*) from rdq.task")
        return session.submit()


@LEVELS
def test_a_claim_with_an_old_snapshot_takes_nothing_twice(
    first: Session, second: Session, level: str
) -> None:
    task_id = first.submit()
    isolate(second, level)
    with refused(SERIALIZATION_FAILURE), second.transaction():
        second.value("select count(*) from rdq.due")
        assert first.fail(first.claim_one()) == "PENDING"
        # The old ticket is gone, and the new one is not in this snapshot.
        second.claim()
    assert second.claim_one().attempt_no == 2
    assert first.outcomes(task_id) == ["FAILED"]


@LEVELS
def test_a_report_with_an_old_snapshot_does_not_undo_a_reclaim(
    first: Session, second: Session, level: str
) -> None:
    task_id = second.submit()
    claim = second.claim_one()
    isolate(second, level)
    with refused(SERIALIZATION_FAILURE), second.transaction():
        assert second.value("select count(*) from rdq.lease") == 1
        first.expire_leases()
        first.reclaim()
        second.complete(claim)
    assert second.complete(claim) is False
    assert first.history(task_id) == [(1, "LEASE_EXPIRED", "SUCCEEDED")]


@LEVELS
def test_a_submit_with_an_old_snapshot_does_not_double_a_key(
    first: Session, second: Session, level: str
) -> None:
    isolate(second, level)
    with refused(SERIALIZATION_FAILURE), second.transaction():
        assert second.value("select count(*) from rdq.task") == 0
        task_id = first.submit("key")
        second.submit("key")
    assert second.submit("key") == task_id
