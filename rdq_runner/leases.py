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

    @property
    def expires_at(self) -> float:
        """When others may take the task: by our clock never later than by the database's."""
        return self.renewed_at + self.claim.lease_seconds

    @property
    def labels(self) -> dict[str, object]:
        """What a log line says of the attempt."""
        return {
            "task": self.claim.task_id,
            "queue": self.claim.queue,
            "handler": self.claim.handler,
            "attempt": self.claim.attempt_no,
        }

    def beat_after(self, now: float) -> None:
        """Plan the next renewal, with time for a second and a third try."""
        self.beat_at = now + self.claim.lease_seconds / 3

    def cancel(self) -> None:
        """Tell the handler to stop."""
        self.task.cancellation.set()


def keys(leases: Iterable[Lease]) -> tuple[list[UUID], list[UUID]]:
    """Return the ids and the claim tokens, as the functions of rdq take them."""
    pairs = [(lease.claim.task_id, lease.claim.claim_token) for lease in leases]
    return [task_id for task_id, _ in pairs], [token for _, token in pairs]


class Leases:
    """Safe for threads."""

    def __init__(self) -> None:
        self._running: dict[UUID, Lease] = {}
        self._finished: dict[UUID, Lease] = {}
        self._changed = threading.Condition()

    def take(self, claim: Claim, asked_at: float) -> Lease:
        """Note a claim that was asked for at `asked_at`."""
        task = Task(
            id=claim.task_id,
            queue=claim.queue,
            handler=claim.handler,
            payload=claim.payload,
            content_type=claim.content_type,
            headers=claim.headers,
            handler_version=claim.handler_version,
            attempt_no=claim.attempt_no,
            attempt_count=claim.attempt_count,
            redrive_count=claim.redrive_count,
            created_at=claim.created_at,
            give_up_at=claim.give_up_at,
        )
        lease = Lease(claim, task, time.monotonic(), renewed_at=asked_at, beat_at=asked_at)
        lease.beat_after(asked_at)
        with self._changed:
            # Its lease ended unnoticed, and we have claimed it ourselves.
            for other in self._held():
                if other.claim.task_id == claim.task_id:
                    other.cancel()
            self._running[claim.claim_token] = lease
        return lease

    def finish(self, lease: Lease, outcome: Outcome) -> bool:
        """Note how an attempt ended; False where that was settled before, by a shutdown."""
        with self._changed:
            if self._running.pop(lease.claim.claim_token, None) is None:
                return False
            lease.outcome = outcome
            lease.ended_at = time.monotonic()
            self._finished[lease.claim.claim_token] = lease
            self._changed.notify_all()
            return True

    def settle(self, lease: Lease) -> None:
        """Forget a lease whose outcome the database has."""
        with self._changed:
            del self._finished[lease.claim.claim_token]
            self._changed.notify_all()

    def postpone(self, lease: Lease) -> None:
        """Report a lease after all others."""
        with self._changed:
            self._finished[lease.claim.claim_token] = self._finished.pop(lease.claim.claim_token)

    def running(self) -> list[Lease]:
        """Return the leases whose handler runs."""
        with self._changed:
            return list(self._running.values())

    def finished(self, limit: int | None = None) -> list[Lease]:
        """Return the leases whose outcome is not reported, in the order to report them."""
        with self._changed:
            return list(islice(self._finished.values(), limit))

    def held(self) -> list[Lease]:
        """Return all leases."""
        with self._changed:
            return self._held()

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait `seconds` at most until the condition holds; each move of a lease looks at it."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def look_again(self) -> None:
        """Have `wait_for` look at its condition."""
        with self._changed:
            self._changed.notify_all()

    def _held(self) -> list[Lease]:
        return [*self._running.values(), *self._finished.values()]
