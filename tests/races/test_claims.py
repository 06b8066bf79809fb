"""Many workers that claim from one queue."""

from collections import Counter
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Event, Lock
from uuid import UUID

import pytest

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session

TASKS = 20_000
BATCH = 50


class Hands:
    """Who has what: every task is in one pair of hands at a time."""

    def __init__(self) -> None:
        self.doubled: list[UUID] = []
        self.handed_out: Counter[UUID] = Counter()
        self.to_report: SimpleQueue[Sequence[Claim]] = SimpleQueue()
        self.all_done = Event()
        self._held: set[UUID] = set()
        self._done = 0
        self._lock = Lock()

    def take(self, claims: Sequence[Claim]) -> None:
        with self._lock:
            for claim in claims:
                if claim.task_id in self._held:
                    self.doubled.append(claim.task_id)
                self._held.add(claim.task_id)
                self.handed_out[claim.task_id] += 1
        self.to_report.put(claims)

    def let_go(self, claims: Sequence[Claim]) -> None:
        """Before the report: another worker may have the task the moment after."""
        with self._lock:
            self._held.difference_update(claim.task_id for claim in claims)

    def count_done(self, count: int) -> None:
        with self._lock:
            self._done += count
            if self._done >= TASKS:
                self.all_done.set()


@pytest.mark.slow
def test_16_workers_are_handed_each_of_20000_tasks_once_at_a_time(
    first: Session, open_session: OpenSession
) -> None:
    for _ in range(4):
        first.submit_many([{}] * (TASKS // 4))
    hands = Hands()
    workers = [open_session() for _ in range(16)]
    reporters = [open_session() for _ in range(3)]
    calls = [w.start(claim_until_all_done, w, hands) for w in workers]
    calls += [r.start(report_until_all_done, r, hands) for r in reporters]
    try:
        for call in calls:
            call.result(seconds=90)
    finally:
        hands.all_done.set()
    assert hands.doubled == []
    assert len(hands.handed_out) == TASKS
    assert first.rows("select outcome, count(*) from rdq.attempt group by 1 order by 1") == [
        ("FAILED", hands.handed_out.total() - TASKS),
        ("SUCCEEDED", TASKS),
    ]
    assert hands.handed_out.total() > TASKS


def claim_until_all_done(session: Session, hands: Hands) -> None:
    while not hands.all_done.is_set():
        if claims := session.claim(BATCH):
            hands.take(claims)


def report_until_all_done(session: Session, hands: Hands) -> None:
    """Report that one in twenty failed when it was tried for the first time."""
    while not hands.all_done.is_set():
        try:
            claims = hands.to_report.get(timeout=0.1)
        except Empty:
            continue
        hands.let_go(claims)
        failed = [claim.attempt_no == 1 and claim.task_id.int % 20 == 0 for claim in claims]
        answers = session.report(claims, [{"class": "TRANSIENT"} if f else None for f in failed])
        assert not any(stale for _, _, stale in answers)
        hands.count_done(failed.count(False))
