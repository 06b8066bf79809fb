"""A redrive with an edited task meets another one: one edit is kept, and the audit has that one."""

from uuid import UUID

import psycopg
import pytest
from psycopg import Rollback

from tests.races.sessions import Session, refused


@pytest.fixture
def dead(first: Session) -> UUID:
    """A dead letter."""
    task_id = first.submit()
    first.bury(task_id)
    return task_id


def edit(session: Session, task_id: UUID, payload: str) -> str:
    """Redrive a task with another payload; return the state that it is in now."""
    return str(session.value("select status from rdq.redrive(%s, %s)", task_id, payload))


def payload(session: Session) -> str:
    return str(session.value("select convert_from(payload, 'UTF8') from rdq.task"))


def edits(session: Session) -> list[tuple[str, str]]:
    """Return what each edit found and left, as the audit has it."""
    return [
        (row[0], row[1])
        for row in session.rows("""
            select
              convert_from(decode(before ->> 'payload', 'base64'), 'UTF8'),
              convert_from(decode(after ->> 'payload', 'base64'), 'UTF8')
            from rdq.audit
            where action = 'redrive'
            order by id
            """)
    ]


def test_of_two_edits_at_once_the_first_is_kept(
    first: Session, second: Session, dead: UUID
) -> None:
    with first.transaction():
        edit(first, dead, "first")
        other = second.start(edit, second, dead, "second")
        other.wait_until_blocked_by(first)
    with refused("RD004"):
        other.result()
    assert payload(second) == "first"
    assert edits(second) == [("x", "first")]


def test_an_edit_that_is_rolled_back_leaves_the_task_as_it_was_to_the_next(
    first: Session, second: Session, dead: UUID
) -> None:
    with first.transaction():
        edit(first, dead, "first")
        other = second.start(edit, second, dead, "second")
        other.wait_until_blocked_by(first)
        raise Rollback
    assert other.result() == "PENDING"
    assert edits(second) == [("x", "second")]


def test_a_redrive_that_waited_for_a_whole_life_says_that_the_task_died_again(
    first: Session, second: Session, dead: UUID
) -> None:
    with first.transaction():
        edit(first, dead, "first")
        other = second.start(edit, second, dead, "second")
        other.wait_until_blocked_by(first)
        first.fail(first.claim_one(), "PERMANENT")
    with pytest.raises(psycopg.Error, match="redriven by somebody else, and is DEAD again"):
        other.result()
    assert payload(second) == "first"
    # Who has looked at the new failure may go on from there.
    assert edit(second, dead, "second") == "PENDING"
    assert edits(second) == [("x", "first"), ("first", "second")]
