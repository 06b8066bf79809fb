"""Roles that may only connect, and many who do the same at once: nothing is held up or lost."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from threading import Barrier, Event
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.races.conftest import OpenSession
from tests.races.roles import Roles, Row
from tests.races.sessions import Session, refused
from tests.races.test_idle import at_once

LOCK = 'select pg_advisory_lock(7496817, hashtext(q collate "C")) from unnest(%s::text[]) q'
PAIRS = 60
ROUNDS = 150


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    with ExitStack() as stack:
        yield Roles(database, stack)


@pytest.fixture
def stranger(roles: Roles) -> psycopg.Connection[Row]:
    """A session of a role that has no right but to connect."""
    return roles.connect(roles.create("stranger"))


@pytest.mark.parametrize("capability", [None, "producer", "worker", "viewer", "operator", "admin"])
def test_a_stranger_who_holds_the_lock_of_every_queue_holds_up_nobody(
    first: Session, second: Session, roles: Roles, capability: str | None
) -> None:
    name = roles.create("stranger")
    stranger = roles.connect(roles.grant(name, capability, "*") if capability else name)
    role = roles.create("granted")
    second.execute("select rdq.create_queue('other')")
    stranger.execute(LOCK, [["q", "other"]])
    with at_once():
        first.submit()
        first.submit("key")
    with at_once():
        assert len(first.submit_many([{}] * 3)) == 3
    with at_once(), refused("RD004"):
        first.execute("select rdq.drop_queue('other')")
    with at_once():
        assert first.tick() == (0, 0, 0, 0)
    with at_once():
        first.execute("select rdq.refresh_queue_stats()")
        assert first.value("select due from rdq.recent_queue_stats() where queue = 'q'") == 5
    with at_once():
        first.execute("select rdq.grant_access(%s, 'viewer', '{*}')", role)
    stranger.execute("select pg_advisory_unlock_all()")
    first.execute("select rdq.drop_queue('other')")


def test_no_submit_is_lost_to_a_drop_whatever_a_stranger_locks(
    first: Session,
    second: Session,
    open_session: OpenSession,
    stranger: psycopg.Connection[Any],
) -> None:
    together = Barrier(2)
    outcomes: set[tuple[bool, bool]] = set()

    def submit(session: Session) -> UUID | None:
        together.wait()
        try:
            return session.submit(queue="r")
        except psycopg.Error as error:
            if error.sqlstate != "RD001":
                raise
            return None

    def drop(session: Session) -> bool:
        together.wait()
        try:
            session.execute("select rdq.drop_queue('r')")
        except psycopg.Error as error:
            if error.sqlstate != "RD004":
                raise
            return False
        return True

    with restless(open_session(), stranger, "r"):
        for _ in range(ROUNDS):
            first.execute("select rdq.create_queue('r')")
            submitted, dropped = first.start(submit, first), second.start(drop, second)
            task_id, gone = submitted.result(), dropped.result()
            outcomes.add((task_id is not None, gone))
            if task_id:
                assert not gone
                assert first.status(task_id) == "PENDING"
                first.cancel(task_id)
                first.purge(task_id)
    # Each of them has won, and they did meet.
    assert {(True, False), (False, True)} <= outcomes


@contextmanager
def restless(session: Session, stranger: psycopg.Connection[Any], queue: str) -> Iterator[None]:
    """Let a stranger take and leave the lock of a queue, shared or not, while the block lasts."""
    ending = Event()
    random = Random(1)

    def lock_and_leave(_: Session) -> None:
        while not ending.is_set():
            shared = random.choice(["", "_shared"])
            stranger.execute(
                f"select pg_try_advisory_lock{shared}(7496817, hashtext('{queue}')),"
                f" pg_sleep({random.random() / 200})".encode()
            )
            stranger.execute("select pg_advisory_unlock_all(), pg_sleep(0.001)")

    under_way = session.start(lock_and_leave, session)
    try:
        yield
    finally:
        ending.set()
        under_way.result()


def test_sessions_that_grant_at_once_all_succeed(
    first: Session, open_session: OpenSession, roles: Roles
) -> None:
    """https://github.com/cyrilgdn/terraform-provider-postgresql/issues/178: they failed."""
    names = [roles.create(f"granted_{number}") for number in range(8)]
    together = Barrier(8)

    def grant(session: Session, role: str) -> None:
        together.wait()
        for capability in ("viewer", "worker", "operator"):
            session.execute("select rdq.grant_access(%s, %s, '{q}')", role, capability)
        session.execute("select rdq.revoke_access(%s, 'worker')", role)

    calls = []
    for role in names:
        session = open_session()
        calls.append(session.start(grant, session, role))
    for call in calls:
        call.result()
    granted = dict(
        first.rows("select role::text, array_agg(capability) from rdq.access group by 1")
    )
    assert {role: sorted(granted[role]) for role in names} == {
        role: ["operator", "viewer"] for role in names
    }
    privilege = "select has_function_privilege(%s, 'rdq.{}(uuid, text)', 'execute')"
    for role in names:
        assert first.value(privilege.format("cancel"), role)


def test_of_two_who_create_a_queue_with_settings_both_count(
    first: Session, second: Session
) -> None:
    """https://github.com/pgmq/pgmq/issues/394: of two who create a queue, one failed."""
    together = Barrier(2)

    def create(session: Session, settings: dict[str, object]) -> None:
        for number in range(PAIRS):
            together.wait()
            session.execute("select rdq.create_queue(%s, %s)", f"pair-{number}", Jsonb(settings))

    calls = [
        first.start(create, first, {"max_attempts": 3}),
        second.start(create, second, {"vanish_limit": 7}),
    ]
    for call in calls:
        call.result()
    query = "select count(*) from rdq.queues where queue like 'pair-%%' and {}"
    assert first.value(query.format("(max_attempts, vanish_limit) = (3, 7)")) == PAIRS
    audited = """
        select array_agg(before is not null order by before is not null)
        from rdq.audit
        where action = 'create_queue' and queue like 'pair-%%'
        group by queue
        """
    assert first.rows(audited) == [([False, True],)] * PAIRS
