"""The leases that this process holds: the handler runs, or has ended and its outcome is unreported.

As in the database, the place where a lease is says its state, and nothing is counted apart: free
slots, the backlog of reports, what to renew and what a shutdown hands back are read from here.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from rdq_runner.outcomes import Outcome
from rdq_runner.rows import Claim
from rdq_runner.task import Task


@dataclass(eq=False, slots=True)
class Lease:
    """One claim; times are those of `time.monotonic`."""

    claim: Claim
    task: Task
    claimed_at: float
    renewed_at: float
    beat_at: float
    outcome: Outcome | None = None
    ended_at: float | None = None
    lost: bool = False
    """It is another's, or it may have been for a while."""
    _labels: dict[str, object] | None = None

    @property
    def expires_at(self) -> float:
        """When others may take the task: by our clock never later than by the database's."""
        return self.renewed_at + self.claim.lease_seconds

    @property
    def labels(self) -> dict[str, object]:
        """What a log line says of the attempt."""
        if self._labels is None:
            claim = self.claim
            self._labels = {
                "task": str(claim.task_id),
                "queue": claim.queue,
                "handler": claim.handler,
                "attempt": claim.attempt_no,
            }
        return self._labels

    def beat_after(self, now: float) -> None:
        """Plan the next renewal, with time for a second and a third try."""
        self.beat_at = now + self.claim.lease_seconds / 3

    def cancel(self) -> None:
        """Tell the handler to stop."""
        self.task.cancellation.set()


def keys(leases: Iterable[Lease]) -> tuple[list[UUID], list[UUID]]:
    """Return the ids and the claim tokens, as the functions of rdq take them."""
    claims = [lease.claim for lease in leases]
    return [claim.task_id for claim in claims], [claim.claim_token for claim in claims]


class Leases:
    """Safe for threads. Each move is one look-up, however many leases there are."""

    def __init__(self) -> None:
        # Sets that keep the order: the values mean nothing.
        self._running: dict[Lease, None] = {}
        self._finished: dict[Lease, None] = {}
        self._latest: dict[UUID, Lease] = {}
        """By task: it may be held twice, where the first lease ended unnoticed."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting = 0

    def take(self, claims: Iterable[Claim], asked_at: float) -> list[Lease]:
        """Note claims that were asked for at `asked_at`."""
        now = time.monotonic()
        leases = [_lease(claim, asked_at, now) for claim in claims]
        with self._lock:
            for lease in leases:
                # Its lease ended unnoticed, and we have claimed it ourselves.
                if earlier := self._latest.get(lease.claim.task_id):
                    earlier.cancel()
                self._latest[lease.claim.task_id] = lease
                self._running[lease] = None
        return leases

    def finish(self, lease: Lease, outcome: Outcome) -> bool:
        """Note how an attempt ended; False where that was settled before, by a shutdown."""
        now = time.monotonic()
        with self._lock:
            if lease not in self._running:
                return False
            del self._running[lease]
            lease.outcome = outcome
            lease.ended_at = now
            self._finished[lease] = None
            self._tell()
            return True

    def settle(self, leases: Iterable[Lease]) -> None:
        """Forget leases whose outcome the database has."""
        with self._lock:
            for lease in leases:
                del self._finished[lease]
                if self._latest.get(lease.claim.task_id) is lease:
                    del self._latest[lease.claim.task_id]
            self._tell()

    def postpone(self, lease: Lease) -> None:
        """Report a lease after all others."""
        with self._lock:
            self._finished[lease] = self._finished.pop(lease)

    @property
    def running_count(self) -> int:
        """How many leases there are whose handler runs."""
        return len(self._running)

    @property
    def finished_count(self) -> int:
        """How many leases there are whose outcome is not reported."""
        return len(self._finished)

    def running(self) -> list[Lease]:
        """Return the leases whose handler runs."""
        with self._lock:
            return list(self._running)

    def finished(self, limit: int | None = None) -> list[Lease]:
        """Return the leases whose outcome is not reported, in the order to report them."""
        with self._lock:
            return list(islice(self._finished, limit))

    def held(self) -> list[Lease]:
        """Return all leases."""
        with self._lock:
            return [*self._running, *self._finished]

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait `seconds` at most until the condition holds; each move of a lease looks at it."""
        with self._changed:
            self._waiting += 1
            try:
                return self._changed.wait_for(condition, seconds)
            finally:
                self._waiting -= 1

    def look_again(self) -> None:
        """Have `wait_for` look at its condition."""
        with self._lock:
            self._tell()

    def _tell(self) -> None:
        if self._waiting:
            self._changed.notify_all()


def _lease(claim: Claim, asked_at: float, now: float) -> Lease:
    task = Task.of(claim)
    lease = Lease(claim, task, claimed_at=now, renewed_at=asked_at, beat_at=asked_at)
    lease.beat_after(asked_at)
    return lease
