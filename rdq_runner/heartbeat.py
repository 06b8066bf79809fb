"""Renews every lease, from a thread and a connection of its own: no handler can hold it up.

Only code that keeps the interpreter's lock without a pause could, as a C extension might.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final

import psycopg

from rdq_runner.leases import Lease, Leases, keys
from rdq_runner.logs import say
from rdq_runner.loop import Loop
from rdq_runner.sessions import Session
from rdq_runner.sql import Functions

# Less would take a busy server for a silent one.
LEAST_PATIENCE_SECONDS: Final = 1.0


class Heartbeat(Loop):
    """Renews all leases when a third of one has passed; tells the handlers whose lease is lost.

    A server that does not answer is given up after a sixth of the shortest lease. So there is time
    for a second and a third try, for leases of two seconds and more.

    It goes on renewing those too: the token decides whether a lease is held, and asking costs
    nothing.

    :param lost: is told of each lease that was lost while its handler ran.
    """

    def __init__(
        self,
        session: Session,
        leases: Leases,
        lease: timedelta | None,
        lost: Callable[[Lease], None],
    ) -> None:
        super().__init__(session)
        self._longest_patience = session.patience
        self._lost = lost
        self._leases = leases
        self._lease = lease
        self._planned_at = float("inf")
        self._shortest = float("inf")

    def claimed(self, leases: Iterable[Lease]) -> None:
        """Note new leases; they need no look now if the next one comes in time for them."""
        if any(
            lease.beat_at < self._planned_at or lease.claim.lease_seconds < self._shortest
            for lease in leases
        ):
            self.wake()

    def step(self, rdq: Functions) -> float | None:
        """Renew, if it is time; return when the next lease wants it."""
        self._planned_at = float("inf")  # a lease that comes meanwhile is seen at the next step
        leases = self._leases.held()
        self._be_patient(leases)
        now = time.monotonic()
        if any(lease.beat_at <= now for lease in leases):
            kept = rdq.heartbeat(*keys(leases), lease=self._lease)
            for lease in leases:
                lease.beat_after(now)
                if lease.claim.task_id in kept:
                    lease.renewed_at = now
                else:
                    self._cancel(lease, "lease lost")
        self._planned_at = min((lease.beat_at for lease in leases), default=float("inf"))
        return self._planned_at - now if leases else None

    def failed(self, error: psycopg.Error) -> float:
        """Go on trying; a lease that ended meanwhile may be somebody else's by now."""
        leases = self._leases.held()
        self._be_patient(leases)
        now = time.monotonic()
        for lease in leases:
            if lease.expires_at <= now:
                self._cancel(lease, "lease ended unrenewed")
        # A short lease does not wait out a long pause.
        return min([self.session.pause, *(lease.claim.lease_seconds / 3 for lease in leases)])

    def _be_patient(self, leases: Sequence[Lease]) -> None:
        """Have the next call, or the connection for it, take no longer than the leases allow."""
        seconds = (lease.claim.lease_seconds for lease in leases)
        self._shortest = min(seconds, default=float("inf"))
        patience = max(LEAST_PATIENCE_SECONDS, self._shortest / 6)
        self.session.patience = min(patience, self._longest_patience)

    def _cancel(self, lease: Lease, event: str) -> None:
        lease.lost = True
        # Once; and an attempt that has ended is about to be reported, or was while we asked.
        if lease.outcome is None and not lease.task.cancelled:
            lease.cancel()
            self._lost(lease)
            say(logging.WARNING, event, **lease.labels)
