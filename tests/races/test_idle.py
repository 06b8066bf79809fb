"""Beside a transaction that somebody left open: nothing waits for it without bound.

What goes through many passes over what is locked, does the rest at once, and does that later; what
names one waits for five seconds, and says that it was in vain.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

import pytest
from psycopg import IsolationLevel, Rollback

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session, refused

AT_ONCE_SECONDS = 2.0
"""Well below the five seconds after which a call gives up, and enough on a busy machine."""
GIVEN_UP_SECONDS = (4.5, 8.0)
BUSY = "RD010"


@contextmanager
def at_once() -> Iterator[None]:
    began_at = time.monotonic()
    yield
    assert time.monotonic() - began_at < AT_ONCE_SECONDS


@contextmanager
def given_up(code: str) -> Iterator[None]:
    """Expect that a call waits for its five seconds, and not much longer."""
    began_at = time.monotonic()
    with refused(code):
        yield
    shortest, longest = GIVEN_UP_SECONDS
    assert shortest < time.monotonic() - began_at < longest


@contextmanager
def held(session: Session, table: str, task_id: UUID) -> Iterator[None]:
    """Let a transaction that does nothing hold the ticket of a task."""
    with session.transaction():
        session.execute(f"select from rdq.{table} where task_id = %s for update", task_id)
        yield


def dead_letters(session: Session, count: int) -> list[UUID]:
    task_ids = session.submit_many([{}] * count)
    session.bury(*task_ids)
    return task_ids


def statuses(session: Session, task_ids: list[UUID]) -> list[str | None]:
    return [session.status(task_id) for task_id in task_ids]


def test_a_bulk_redrive_passes_over_what_is_locked_and_sends_it_later(
    first: Session, second: Session
) -> None:
    task_ids = dead_letters(first, 5)
    with held(first, "dead", task_ids[2]):
        with at_once():
            assert second.redrive_where() == (4, 0)
        with at_once():
            assert second.tick() == (0, 0, 0, 0)
        assert second.rows("select state, sent, locked from rdq.redrives") == [("RUNNING", 4, 1)]
    assert second.tick() == (0, 0, 1, 0)
    assert second.rows("select state, sent, locked from rdq.redrives") == [("DONE", 5, 0)]
    assert second.rows("select life, count(*) from rdq.due group by life") == [(1, 5)]
    assert second.value("select count(*) from rdq.redriven") == 5


def test_a_canary_that_is_locked_is_sent_later_and_counted_once(
    first: Session, second: Session
) -> None:
    task_ids = dead_letters(first, 3)
    query = "select sent from rdq.redrive_where('q', canary => 1)"
    newest = first.value("select task_id from rdq.dead order by dead_at desc, task_id desc limit 1")
    with held(first, "dead", newest):
        with at_once():
            assert second.value(query) == 0
        assert second.tick()[2] == 0
    assert second.tick()[2] == 1
    assert second.status(newest) == "PENDING"
    assert second.complete(second.claim_one())
    assert second.tick()[2] == 2
    shown = "select state, matched, sent, skipped, locked from rdq.redrives"
    assert second.rows(shown) == [("DONE", 3, 3, 0, 0)]
    assert sorted(map(str, statuses(second, task_ids))) == ["PENDING", "PENDING", "SUCCEEDED"]


def test_a_bulk_purge_passes_over_what_is_locked_and_deletes_it_later(
    first: Session, second: Session
) -> None:
    task_ids = dead_letters(first, 5)
    with held(first, "dead", task_ids[2]), at_once():
        assert second.rows("select * from rdq.purge_where('q')") == [(4, 1)]
    assert statuses(second, task_ids) == [None, None, "DEAD", None, None]
    assert second.rows("select * from rdq.purge_where('q')") == [(1, 0)]
    audited = "select sum(affected) from rdq.audit where action = 'purge_where'"
    assert second.value(audited) == 5


@pytest.mark.parametrize(("table", "state"), [("due", "PENDING"), ("lease", "IN_FLIGHT")])
def test_a_bulk_cancel_passes_over_what_is_locked_and_cancels_it_later(
    first: Session, second: Session, table: str, state: str
) -> None:
    task_ids = first.submit_many([{}] * 5)
    if table == "lease":
        assert len(first.claim(5)) == 5
    with held(first, table, task_ids[2]), at_once():
        assert second.rows("select * from rdq.cancel_where('q')") == [(4, 1)]
    assert statuses(second, task_ids) == ["DEAD", "DEAD", state, "DEAD", "DEAD"]
    assert second.rows("select * from rdq.cancel_where('q')") == [(1, 0)]
    assert second.value("select count(*) from rdq.dead where reason = 'CANCELLED'") == 5
    audited = "select sum(affected) from rdq.audit where action = 'cancel_where'"
    assert second.value(audited) == 5


def leases(session: Session) -> list[UUID]:
    task_ids = session.submit_many([{}] * 5)
    session.claim(5)
    session.expire_leases()
    return task_ids


def deadlines(session: Session) -> list[UUID]:
    task_ids = session.submit_many([{}] * 5)
    session.execute("update rdq.due set give_up_at = clock_timestamp() - interval '1 second'")
    return task_ids


def retention(session: Session) -> list[UUID]:
    task_ids = dead_letters(session, 5)
    session.execute("select rdq.alter_queue('q', '{\"keep_dead\": 0}')")
    return task_ids


def redrives(session: Session) -> list[UUID]:
    task_ids = dead_letters(session, 5)
    session.leave_a_redrive_to_the_sweeps()
    return task_ids


PARTS: Mapping[Callable[[Session], list[UUID]], tuple[str, int]] = {
    leases: ("lease", 0),
    deadlines: ("due", 1),
    redrives: ("dead", 2),
    retention: ("dead", 3),
}
"""What a tick works on: where the tickets of that are, and which of its counts says how many."""


@pytest.mark.parametrize("arrange", PARTS, ids=lambda part: part.__name__)
def test_a_tick_passes_over_what_is_locked_and_does_it_later(
    first: Session, second: Session, arrange: Callable[[Session], list[UUID]]
) -> None:
    table, place = PARTS[arrange]
    task_ids = arrange(first)
    nothing = (0, 0, 0, 0)
    with held(first, table, task_ids[2]):
        with at_once():
            assert second.tick() == (*nothing[:place], 4, *nothing[place + 1 :])
        with at_once():
            assert second.tick() == nothing
    assert second.tick() == (*nothing[:place], 1, *nothing[place + 1 :])
    assert second.tick() == nothing


def test_a_redrive_is_stopped_at_once_while_a_purge_of_its_next_dead_letter_is_open(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    """https://github.com/riverqueue/river/issues/1059: a pause waited for what was locked."""
    dead_letters(first, 40)
    redrive_id = first.value("select redrive_id from rdq.redrive_where('q', per_second => 1)")
    upcoming = first.value("select task_id from rdq.dead order by dead_at, task_id limit 1")
    sweeper = open_session()
    with first.transaction():
        first.purge(upcoming)
        sweeper.execute("update rdq.redrive_run set next_due_at = next_due_at - interval '9 s'")
        with sweeper.transaction(), at_once():
            assert sweeper.tick()[2] > 0
        for act in ("pause_redrive", "resume_redrive", "cancel_redrive"):
            with at_once():
                second.execute(f"select rdq.{act}(%s)", redrive_id)
        raise Rollback
    assert second.tick()[2] == 0
    assert second.status(upcoming) == "DEAD"
    assert second.value("select count(*) from rdq.redrive_passed") == 0


def test_a_queue_is_paused_beside_a_producer_that_is_idle(first: Session, second: Session) -> None:
    first.connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with first.transaction():
        task_id = first.submit()
        with at_once():
            second.execute("select rdq.pause_queue('q')")
    assert second.claim() == []
    second.execute("select rdq.resume_queue('q')")
    assert second.claim_one().task_id == task_id


@pytest.mark.parametrize(
    "act",
    [
        "select rdq.pause_queue('q')",
        "select rdq.alter_queue('q', '{\"max_attempts\": 7}')",
        "select rdq.create_queue('q', '{\"max_attempts\": 7}')",
    ],
    ids=["pause", "alter", "create"],
)
def test_a_queue_that_is_being_altered_is_busy(first: Session, second: Session, act: str) -> None:
    with first.transaction():
        first.execute("select rdq.alter_queue('q', '{\"max_attempts\": 3}')")
        with given_up(BUSY):
            second.execute(act)
    second.execute(act)
    settled = "select paused_at is not null or max_attempts = 7 from rdq.queues where queue = 'q'"
    assert second.value(settled)


@pytest.mark.parametrize(
    "act",
    [
        "select rdq.drop_endpoint('other', 'h')",
        "select rdq.set_endpoint('other', 'h', 'https://example.org/3')",
        "select rdq.drop_queue('other')",
    ],
    ids=["drop", "set", "drop queue"],
)
def test_an_endpoint_that_is_being_changed_is_busy(
    first: Session, second: Session, act: str
) -> None:
    first.execute("select rdq.create_queue('other')")
    first.execute("select rdq.set_endpoint('other', 'h', 'https://example.org/1')")
    with first.transaction():
        first.execute("select rdq.set_endpoint('other', 'h', 'https://example.org/2')")
        with given_up(BUSY):
            second.execute(act)
    second.execute(act)


@pytest.mark.parametrize("act", ["redrive", "purge"])
def test_a_dead_letter_that_is_locked_is_busy(first: Session, second: Session, act: str) -> None:
    [task_id] = dead_letters(first, 1)
    with held(first, "dead", task_id), given_up(BUSY):
        second.execute(f"select rdq.{act}(%s)", task_id)
    assert second.status(task_id) == "DEAD"
    second.execute(f"select rdq.{act}(%s)", task_id)
    assert second.status(task_id) == ("PENDING" if act == "redrive" else None)


def complete(session: Session, claim: Claim) -> bool:
    return session.complete(claim)


def report(session: Session, claim: Claim) -> bool:
    [(_, _, stale)] = session.report([claim])
    return not stale


@pytest.mark.parametrize("tell", [complete, report])
def test_a_report_does_not_wait_for_ever_for_a_cancel_that_is_idle(
    first: Session, second: Session, tell: Callable[[Session, Claim], bool]
) -> None:
    task_id = second.submit()
    claim = second.claim_one()
    with first.transaction():
        first.cancel(task_id)
        with given_up("55P03"):
            tell(second, claim)
        raise Rollback
    assert second.status(task_id) == "IN_FLIGHT"
    assert second.history(task_id) == []
    assert tell(second, claim)
    assert second.history(task_id) == [(1, "SUCCEEDED", None)]
