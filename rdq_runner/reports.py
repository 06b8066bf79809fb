"""Tells the database how attempts ended, in batches, until it knows.

There is no list of its own: what is to be reported is what `Leases` holds as finished, so an
outcome stays there, and its lease is renewed, through any outage.

Another session may hold a lease in a transaction that it leaves open, as that of a person who has
cancelled the task and gone to lunch. The database then refuses the whole batch after some seconds.
So its reports go apart, one by one, until the one is found; that one is tried again later, by
itself, and holds up no other for longer than one such wait.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import psycopg

from rdq_runner.fields import members
from rdq_runner.leases import Lease, Leases, keys
from rdq_runner.logs import say, say_each
from rdq_runner.loop import Loop
from rdq_runner.metrics import Metrics
from rdq_runner.outcomes import Committed, Failure, Release
from rdq_runner.sessions import Session, is_outage
from rdq_runner.sql import Functions

BATCH: Final = 100
# A batch waits so long for company. It costs latency, and saves a commit for each that comes.
LINGER_SECONDS: Final = 0.003
# Before a lease that another session holds is tried again; twice that the next time, and so on.
HELD_SECONDS: Final = 5.0
LONGEST_HELD_SECONDS: Final = 60.0

# A lease, and what is said of how it ended.
_Settled = tuple[Lease, Mapping[str, object]]


@dataclass
class _Apart:
    """A lease that is reported by itself, at that time by `time.monotonic`."""

    at: float = 0.0
    pause: float = 0.0

    def wait(self) -> None:
        """Put it off."""
        self.pause = min(max(2 * self.pause, HELD_SECONDS), LONGEST_HELD_SECONDS)
        self.at = time.monotonic() + self.pause


class Reports(Loop):
    """Reports what has finished, and hands back what is released.

    :param rescheduled: is called with the seconds until tasks are due again: nothing else announces
        it.
    :param reported: is called when the database has some outcomes.
    :param failed: is called when leases want to be renewed, since a report has failed.
    """

    def __init__(
        self,
        session: Session,
        leases: Leases,
        metrics: Metrics,
        rescheduled: Callable[[float], None],
        reported: Callable[[], None],
        failed: Callable[[], None],
    ) -> None:
        super().__init__(session)
        self._metrics = metrics
        self._leases = leases
        self._rescheduled = rescheduled
        self._reported = reported
        self._failed = failed
        self._apart: dict[Lease, _Apart] = {}

    def step(self, rdq: Functions) -> float | None:
        """Settle a batch, and what goes apart."""
        if not self._leases.finished_count:
            return None
        if self._leases.finished_count < BATCH:
            time.sleep(LINGER_SECONDS)
        leases = self._leases.finished(limit=BATCH + len(self._apart))
        refused = self._deliver(rdq, [lease for lease in leases if lease not in self._apart])
        now = time.monotonic()
        for lease in [lease for lease, apart in self._apart.items() if apart.at <= now]:
            refused = self._deliver(rdq, [lease]) or refused
            if lease in self._apart:
                break  # that has taken its time: what has ended meanwhile goes first
        if refused:
            raise refused
        if self._leases.finished_count > len(self._apart):
            return 0
        times = [apart.at for apart in self._apart.values()]
        return max(min(times) - time.monotonic(), 0.0) if times else None

    def _deliver(self, rdq: Functions, leases: Sequence[Lease]) -> psycopg.Error | None:
        """Settle leases, or set them apart; return the error of what the database never takes."""
        releases: dict[Release, list[Lease]] = {}
        attempts: list[Lease] = []
        committed: list[_Settled] = []
        for lease in leases:
            if isinstance(lease.outcome, Committed):
                self._metrics.ended(lease, "SUCCEEDED")
                committed.append((lease, {"outcome": "SUCCEEDED", "status": "SUCCEEDED"}))
            elif isinstance(lease.outcome, Release):
                releases.setdefault(lease.outcome, []).append(lease)
            else:
                attempts.append(lease)
        if committed:
            self._settle(committed)
        refused = None
        if attempts:
            with self._setting_apart(attempts):
                refused = self._report(rdq, attempts)
        for release, released in releases.items():
            with self._setting_apart(released):
                self._release(rdq, release, released)
        return refused

    @contextmanager
    def _setting_apart(self, leases: Sequence[Lease]) -> Iterator[None]:
        """Set leases apart if another session holds one of them; a single one waits for a while."""
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            if len(leases) > 1:
                unsettled = set(self._leases.finished())
                self._apart |= {lease: _Apart() for lease in leases if lease in unsettled}
            else:
                [lease] = leases
                apart = self._apart.setdefault(lease, _Apart())
                apart.wait()
                if apart.pause == HELD_SECONDS:
                    say(logging.WARNING, "another session holds the task", **lease.labels)
            self._renew(leases)

    def failed(self, error: psycopg.Error) -> float:
        """Wait."""
        self._renew(self._leases.finished())
        return super().failed(error)

    def _renew(self, leases: Iterable[Lease]) -> None:
        """Have leases renewed: heartbeats have passed by while the report had them locked."""
        for lease in leases:
            lease.beat_at = 0.0
        self._failed()

    def _release(self, rdq: Functions, release: Release, leases: list[Lease]) -> None:
        delay = timedelta(seconds=release.delay)
        released = rdq.release(*keys(leases), reason=release.reason, delay=delay)
        settled: list[_Settled] = []
        for lease in leases:
            stale = lease.claim.task_id not in released
            self._metrics.ended(lease, "RELEASED", stale=stale)
            fields = {"outcome": "RELEASED", "reason": release.reason, "stale": stale or None}
            settled.append((lease, fields))
        self._settle(settled)
        self._rescheduled(release.delay)

    def _report(self, rdq: Functions, leases: list[Lease]) -> psycopg.Error | None:
        """Report all that the database takes; return the error of what it never will."""
        failures = [
            f"{{{members(lease.outcome.document())}}}"
            if isinstance(lease.outcome, Failure)
            else None
            for lease in leases
        ]
        try:
            answers = rdq.report(*keys(leases), failures)
        except psycopg.Error as error:
            if is_outage(error):
                raise  # a lock that is not to be had is one as well: all of the batch goes apart
            return self._report_apart(rdq, leases, error)
        settled: list[_Settled] = []
        for lease, answer in zip(leases, answers, strict=True):
            failure = lease.outcome if isinstance(lease.outcome, Failure) else None
            outcome = "FAILED" if failure else "SUCCEEDED"
            self._metrics.ended(
                lease,
                outcome,
                error_class=answer.error_class,
                dead_reason=answer.dead_reason,
                stale=answer.stale,
            )
            fields = {
                "outcome": outcome,
                "error_type": failure and failure.type,
                "error_class": answer.error_class,
                "status": answer.status,
                "next_attempt_at": answer.next_attempt_at,
                "dead_reason": answer.dead_reason,
                "stale": answer.stale or None,
            }
            settled.append((lease, fields))
        self._settle(settled)
        retries = [answer.retry_in for answer in answers if answer.retry_in is not None]
        if retries:
            self._rescheduled(min(retries))
        return None

    def _report_apart(
        self, rdq: Functions, leases: list[Lease], error: psycopg.Error
    ) -> psycopg.Error | None:
        """Find the report that the database refuses, and make it one that it cannot refuse."""
        if len(leases) > 1:
            middle = len(leases) // 2
            first = self._report(rdq, leases[:middle])
            return self._report(rdq, leases[middle:]) or first
        [lease] = leases
        say(logging.ERROR, "report refused", **lease.labels, sqlstate=error.sqlstate)
        if isinstance(lease.outcome, Failure) and lease.outcome != lease.outcome.minimal():
            lease.outcome = lease.outcome.minimal()
            return self._report(rdq, leases)
        self._leases.postpone(lease)
        return error

    def _settle(self, settled: Sequence[_Settled]) -> None:
        self._leases.settle([lease for lease, _ in settled])
        for lease, _ in settled:
            self._apart.pop(lease, None)
        self._reported()
        for level, is_stale in ((logging.INFO, False), (logging.WARNING, True)):
            say_each(
                level,
                "attempt ended",
                (
                    {**lease.labels, "seconds": _seconds(lease), **fields}
                    for lease, fields in settled
                    if bool(fields.get("stale")) is is_stale
                ),
            )


def _seconds(lease: Lease) -> float:
    return round((lease.ended_at or lease.claimed_at) - lease.claimed_at, 3)
