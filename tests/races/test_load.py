"""Everything at once, on tasks that everybody wants: no deadlock, no error, no ticket lost.

RDQ_TEST_LOAD_SECONDS says for how long; 10 by default.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from uuid import UUID

import psycopg
import pytest

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session

SECONDS = float(os.environ.get("RDQ_TEST_LOAD_SECONDS", "10"))
TASKS = 2000
REFUSALS = ("RD003", "RD004", "RD008")
"""Not found, not in that state any more, a live task has its key: what a second comer is told."""


class Crowd:
    """What the actors have in common: when to stop, and whom they all want."""

    def __init__(self, task_ids: list[UUID]) -> None:
        self.task_ids = task_ids
        self.claims: list[Claim] = []
        self.done: Counter[str] = Counter()
        self.end = time.monotonic() + SECONDS

    def some_id(self, random: Random) -> UUID:
        return random.choice(self.task_ids)


Act = Callable[[Session, Crowd, Random], None]


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 110)
def test_everything_at_once_neither_deadlocks_nor_fails_nor_loses_a_ticket(
    first: Session, open_session: OpenSession
) -> None:
    first.execute("select rdq.alter_queue('q', '{\"lease\": 0.1, \"max_attempts\": 5}')")
    crowd = Crowd(first.submit_many([keyed(number) for number in range(TASKS)]))
    calls = []
    for number, (act, times) in enumerate(ACTORS.items()):
        for copy in range(times):
            session = open_session()
            calls.append(session.start(play, session, act, crowd, Random(100 * number + copy)))
    for call in calls:
        call.result(SECONDS + 60)
    # Each of them has really met the others.
    assert min(crowd.done[act.__name__] for act in ACTORS) > 3, crowd.done
    submitted = len(set(crowd.task_ids))
    purged = first.value("""
        select coalesce(sum(affected), 0) from rdq.audit where action in ('purge', 'purge_where')
        """)
    assert first.value("select count(*) from rdq.task") == submitted - purged
    assert first.value("select count(*) from rdq.tasks where status is null") == 0


def play(session: Session, act: Act, crowd: Crowd, random: Random) -> None:
    while time.monotonic() < crowd.end:
        with suppress_refusals():
            act(session, crowd, random)
            crowd.done[act.__name__] += 1


@contextmanager
def suppress_refusals() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate not in REFUSALS:
            raise


def keyed(number: int) -> dict[str, object]:
    return {"handler": f"h{number % 3}", "dedupe_key": f"key {number}"}


def submit(session: Session, crowd: Crowd, random: Random) -> None:
    numbers = random.sample(range(TASKS), 40)
    crowd.task_ids += session.submit_many([keyed(number) for number in numbers])
    crowd.task_ids.append(session.submit(f"key {numbers[0]}"))


def work(session: Session, crowd: Crowd, random: Random) -> None:
    """Claim and report; now and then give back, forget, or report what somebody else holds."""
    claims = session.claim(random.randint(1, 30))
    crowd.claims = claims
    session.heartbeat(random.sample(claims, len(claims) // 2))
    random.shuffle(claims)
    third = len(claims) // 3
    session.report(claims[:third])
    session.release(claims[third : third + 3])
    rest = claims[third + 3 : -2] + random.sample(crowd.claims, min(len(crowd.claims), 5))
    classes = random.choices(
        ["TRANSIENT", "PERMANENT", "AMBIGUOUS"], weights=[2, 2, 1], k=len(rest)
    )
    session.report(rest, [{"type": "Error", "class": name} for name in classes])


def beat(session: Session, crowd: Crowd, random: Random) -> None:
    session.heartbeat(crowd.claims)
    session.report(crowd.claims[:2])


def sweep(session: Session, crowd: Crowd, random: Random) -> None:
    session.reclaim(random.randint(1, 100))
    session.tick(random.randint(1, 100))


def redrive(session: Session, crowd: Crowd, random: Random) -> None:
    """In bulk with filters that overlap, at once or left to the sweeps, and one by one."""
    handler = random.choice([None, "h0", "h1", "h2"])
    if random.random() < 0.3:
        session.redrive_where(handler)
    else:
        session.leave_a_redrive_to_the_sweeps(handler)
    for _ in range(20):
        with suppress_refusals():
            session.redrive(crowd.some_id(random))


def cancel(session: Session, crowd: Crowd, random: Random) -> None:
    session.cancel(crowd.some_id(random))


def purge(session: Session, crowd: Crowd, random: Random) -> None:
    session.purge_where(random.randint(1, 5), random.choice([None, "PERMANENT"]))
    session.purge(crowd.some_id(random))


def purge_audit(session: Session, crowd: Crowd, random: Random) -> None:
    session.execute("""
        insert into rdq.audit (at, actor, action, affected)
        select now() - interval '1 year', 'test', 'old', 1 from generate_series(1, 20)
        """)
    session.value("select rdq.purge_audit('30 days', max_rows => %s)", random.randint(1, 30))


ACTORS = {
    submit: 2,
    work: 6,
    beat: 1,
    sweep: 2,
    redrive: 1,
    cancel: 2,
    purge: 1,
    purge_audit: 2,
}
