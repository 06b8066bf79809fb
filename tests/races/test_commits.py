"""A producer does not learn whether its commit came through, and submits once more."""

from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.races.conftest import OpenSession
from tests.races.sessions import Session
from tests.waiting import wait_until

End = Callable[[Session, UUID], None]


def commit_and_lose_the_answer(producer: Session, observer: Session, task_id: UUID) -> None:
    """Send a commit, see from outside that it came through, and lose the connection."""
    producer.connection.pgconn.send_query(b"commit")
    wait_until(lambda: observer.status(task_id))
    observer.execute("select pg_terminate_backend(%s)", producer.pid)
    producer.connection.close()


def complete(session: Session, task_id: UUID) -> None:
    session.complete(session.claim_one())


def bury(session: Session, task_id: UUID) -> None:
    session.bury(task_id)


def leave(session: Session, task_id: UUID) -> None:
    """The task waits."""


@pytest.mark.parametrize(
    ("end", "status"), [(leave, "PENDING"), (complete, "SUCCEEDED"), (bury, "DEAD")]
)
def test_a_submit_whose_commit_came_through_is_answered_with_its_task_and_changes_nothing(
    open_session: OpenSession, first: Session, end: End, status: str
) -> None:
    producer, task_id = open_session(), uuid4()
    producer.execute("begin")
    producer.submit("key", task_id=task_id)
    commit_and_lose_the_answer(producer, first, task_id)
    end(first, task_id)
    before = first.rows("select * from rdq.tasks"), first.history(task_id)
    assert open_session().submit("key", task_id=task_id) == task_id
    assert first.status(task_id) == status
    assert (first.rows("select * from rdq.tasks"), first.history(task_id)) == before


def test_a_submit_whose_commit_was_lost_is_made_anew(
    open_session: OpenSession, first: Session
) -> None:
    producer, task_id = open_session(), uuid4()
    producer.execute("begin")
    producer.submit("key", task_id=task_id)
    first.execute("select pg_terminate_backend(%s)", producer.pid)
    with pytest.raises(psycopg.OperationalError):
        producer.execute("commit")
    assert open_session().submit("key", task_id=task_id) == task_id
    assert first.rows("select task_id, status from rdq.tasks") == [(task_id, "PENDING")]


def test_a_completion_whose_commit_came_through_is_answered_as_stale(
    open_session: OpenSession, first: Session
) -> None:
    worker, task_id = open_session(), first.submit()
    claim = worker.claim_one()
    worker.execute("begin")
    worker.complete(claim)
    worker.connection.pgconn.send_query(b"commit")
    wait_until(lambda: first.status(task_id) == "SUCCEEDED")
    worker.connection.close()
    assert open_session().report([claim]) == [(task_id, "SUCCEEDED", True)]
    assert first.outcomes(task_id) == ["SUCCEEDED"]
