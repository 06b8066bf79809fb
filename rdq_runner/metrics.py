"""What a runner counts, by queue and handler, for Prometheus.

Every count is of what this one process did, so that sums over runners are right. What is true of a
queue whichever runner one asks comes from the database: see `rdq_runner.gauges`.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.registry import Collector

from rdq_runner.leases import Lease
from rdq_runner.rows import Tick

# Names of handlers come from producers, and each one costs memory here and in Prometheus. So those
# have a label of their own that this runner has a function or an endpoint for.
UNKNOWN: Final = "_unknown"
OTHER: Final = "_other"
MOST_PAIRS: Final = 500

_PAIR: Final = ("queue", "handler")
_FAILURES: Final = ("TRANSIENT", "PERMANENT", "AMBIGUOUS")
_REASONS: Final = ("EXHAUSTED", "PERMANENT", "AMBIGUOUS", "DEADLINE", "VANISHED", "UNROUTABLE")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class Metrics:
    """The counters and histograms of one runner; safe for threads.

    :param registry: where to show them, under names that begin with ``rdq_``.
    :param knows: whether this runner has the handler of a queue.
    :raises ValueError: another runner's are there: one registry is for one runner.
    """

    def __init__(
        self, registry: CollectorRegistry, knows: Callable[[str, str], bool] = lambda *_: True
    ) -> None:
        self._registry = registry
        self._knows = knows
        self._pairs: dict[tuple[str, str], _Pair] = {}
        self._lock = threading.Lock()
        self._attempts = Counter(
            "rdq_attempts",
            "Attempts that this runner ended, by what was reported. STALE: the claim was lost.",
            [*_PAIR, "outcome", "error_class"],
            registry=None,
        )
        self._duration = Histogram(
            "rdq_attempt_duration_seconds",
            "From the claim to the end of the handler, where it succeeded or failed.",
            _PAIR,
            buckets=_SECONDS,
            registry=None,
        )
        self._claim_latency = Histogram(
            "rdq_claim_latency_seconds",
            "From when a task was due to its claim.",
            _PAIR,
            buckets=_SECONDS,
            registry=None,
        )
        self._retries = Counter(
            "rdq_retries", "Failed attempts that another will follow.", _PAIR, registry=None
        )
        self._rescued = Counter(
            "rdq_successes_after_retry",
            "Successes of tasks whose history has an earlier attempt.",
            _PAIR,
            registry=None,
        )
        self._dead = Counter(
            "rdq_dead_letters",
            "Tasks that a report, claim or tick of this runner made dead letters.",
            [*_PAIR, "reason"],
            registry=None,
        )
        self._lost = Counter(
            "rdq_heartbeats_lost",
            "Leases lost while the handler ran: taken by others, or not renewed in time.",
            _PAIR,
            registry=None,
        )
        self._upkeep = Counter(
            "rdq_upkeep",
            "Tasks that this runner's ticks moved: reclaimed, given up, redriven in bulk, purged.",
            ["action"],
            registry=None,
        )
        self._upkeep_failures = Counter(
            "rdq_upkeep_failures", "Parts of this runner's ticks that failed.", registry=None
        )
        self._collectors: list[Collector] = []
        for metric in (
            self._attempts,
            self._duration,
            self._claim_latency,
            self._retries,
            self._rescued,
            self._dead,
            self._lost,
            self._upkeep,
            self._upkeep_failures,
        ):
            self.show(metric)
        self.ticked(Tick(0, 0, 0, 0))

    def show(self, collector: Collector) -> None:
        """Add a collector to the registry, until `close`.

        :raises ValueError: the registry has one with its names.
        """
        try:
            self._registry.register(collector)
        except ValueError:
            self.close()
            raise
        self._collectors.append(collector)

    def close(self) -> None:
        """Take everything out of the registry, so that another runner may use it."""
        while self._collectors:
            self._registry.unregister(self._collectors.pop())

    def claimed(self, lease: Lease) -> None:
        """Count a claim."""
        claim = lease.claim
        pair = self._pair(claim.queue, claim.handler)
        pair.claim_latency.observe(max(claim.waited_seconds, 0.0))

    def ended(
        self,
        lease: Lease,
        outcome: str,
        *,
        error_class: str | None = None,
        dead_reason: str | None = None,
        stale: bool = False,
    ) -> None:
        """Count an attempt of which the database knows how it ended.

        :param outcome: as in the history.
        :param stale: the report changed nothing.
        """
        claim = lease.claim
        pair = self._pair(claim.queue, claim.handler)
        if lease.ended_at is not None and outcome != "RELEASED":
            pair.duration.observe(max(lease.ended_at - lease.claimed_at, 0.0))
        if stale:
            pair.attempts["STALE", ""].inc()
            return
        pair.attempts[outcome, error_class or ""].inc()
        if dead_reason:
            pair.dead[dead_reason,].inc()
        elif outcome == "FAILED":
            pair.retries.inc()
        if outcome == "SUCCEEDED" and claim.attempt_no > 1:
            pair.rescued.inc()

    def lost(self, lease: Lease) -> None:
        """Count a lease that was lost while its handler ran."""
        self._pair(lease.claim.queue, lease.claim.handler).lost.inc()

    def ticked(self, tick: Tick) -> None:
        """Count what a tick did."""
        for action, count in tick.moved.items():
            self._upkeep.labels(action).inc(count)
        self._upkeep_failures.inc(len(tick.problems or ()))

    def announced(self, notice: str, session: str) -> None:
        """Count dead letters of which only the notice of the database tells.

        :param notice: what came with ``rdq_dead``.
        :param session: which of this runner's sessions made them. Those of a report are counted
            by its answer, also where no notice comes, as behind a pooler. A release has none.
        """
        death = json.loads(notice)
        if session != "reports" or death["reason"] == "UNROUTABLE":
            pair = self._pair(death["queue"], death["handler"])
            pair.dead[death["reason"],].inc(death["count"])

    def _pair(self, queue: str, handler: str) -> "_Pair":
        pair = self._pairs.get((queue, handler))
        if pair:
            return pair
        with self._lock:
            handler = self.label(queue, handler)
            if (queue, handler) not in self._pairs:
                self._pairs[queue, handler] = self._new_pair(queue, handler)
            return self._pairs[queue, handler]

    def label(self, queue: str, handler: str) -> str:
        """Return what to call a handler of a queue."""
        if (queue, handler) in self._pairs:
            return handler
        if not self._knows(queue, handler):
            return UNKNOWN
        return handler if len(self._pairs) < MOST_PAIRS else OTHER

    def _new_pair(self, *pair: str) -> "_Pair":
        new = _Pair(
            self._claim_latency.labels(*pair),
            self._duration.labels(*pair),
            _Children(self._attempts, pair),
            _Children(self._dead, pair),
            self._retries.labels(*pair),
            self._rescued.labels(*pair),
            self._lost.labels(*pair),
        )
        # From zero: a counter that begins at one has no increase for Prometheus.
        for outcome in ("SUCCEEDED", "RELEASED", "STALE"):
            new.attempts[outcome, ""].inc(0)
        for kind in _FAILURES:
            new.attempts["FAILED", kind].inc(0)
        for reason in _REASONS:
            new.dead[reason,].inc(0)
        return new


class _Children(dict[tuple[str, ...], Counter]):
    """The counters of a pair by their other labels, made when they are first asked for."""

    def __init__(self, metric: Counter, pair: tuple[str, ...]) -> None:
        self._metric = metric
        self._pair = pair

    def __missing__(self, labels: tuple[str, ...]) -> Counter:
        child = self[labels] = self._metric.labels(*self._pair, *labels)
        return child


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is counted of a queue and a handler: to look it up each time costs more than to count.

    :param attempts: by outcome and class of the error.
    :param dead: by reason.
    """

    claim_latency: Histogram
    duration: Histogram
    attempts: _Children
    dead: _Children
    retries: Counter
    rescued: Counter
    lost: Counter
