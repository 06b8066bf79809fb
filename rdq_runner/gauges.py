"""How things stand at the moment of a scrape: of this runner, and of its database's queues.

The latter are the same whichever runner one asks, so dashboards take their maximum, not their sum.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import psycopg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rdq_runner import logs
from rdq_runner.leases import Leases
from rdq_runner.logs import say
from rdq_runner.recounts import Recounts
from rdq_runner.registry import Entry
from rdq_runner.rows import QueueStats
from rdq_runner.sessions import Database
from rdq_runner.sql import Functions

# Several scrapes in a moment ask the database once.
CACHE_SECONDS: Final = 1.0
STATEMENT_SECONDS: Final = 2.0
# Where even that is not heard, the connection is given up.
PATIENCE_SECONDS: Final = 4.5
# A scrape waits no longer, whatever the network does. Prometheus itself gives up after ten seconds.
ANSWER_SECONDS: Final = 4.0
# Somebody who scrapes at all comes once a minute.
IDLE_SECONDS: Final = 90.0


@dataclass(eq=False, frozen=True, kw_only=True)
class RunnerGauges(Collector):
    """This runner: what it does now."""

    entry: Entry
    leases: Leases
    database: Database
    label: Callable[[str, str], str]
    overdue: Callable[[], int]

    def describe(self) -> Iterable[Metric]:
        """Name the metrics, without any value."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """Give the values."""
        families = self._families()
        info, slots, in_flight, overdue, pending, available, outages, lines = families
        entry = self.entry
        info.add_metric([entry.runner, entry.version, entry.code_version or ""], 1)
        slots.add_metric([], entry.concurrency)
        claims = [lease.claim for lease in self.leases.running()]
        running = Counter((c.queue, self.label(c.queue, c.handler)) for c in claims)
        for pair, count in running.items():
            in_flight.add_metric(pair, count)
        overdue.add_metric([], self.overdue())
        pending.add_metric([], len(self.leases.finished()))
        available.add_metric([], not self.database.out)
        outages.add_metric([], self.database.outages)
        lines.add_metric([], logs.left_out())
        return families

    def _families(self) -> list[GaugeMetricFamily | CounterMetricFamily]:
        return [
            GaugeMetricFamily(
                "rdq_runner_info",
                "1; the labels say which runner this is.",
                labels=["runner", "version", "code_version"],
            ),
            GaugeMetricFamily("rdq_slots", "How many handlers may run at once.", labels=[]),
            GaugeMetricFamily(
                "rdq_in_flight", "How many handlers run here.", labels=["queue", "handler"]
            ),
            GaugeMetricFamily(
                "rdq_overdue", "How many handlers run on after their timeout.", labels=[]
            ),
            GaugeMetricFamily(
                "rdq_reports_pending",
                "Ended attempts of which the database does not know yet.",
                labels=[],
            ),
            GaugeMetricFamily(
                "rdq_database_available", "0 while this runner has lost its database.", labels=[]
            ),
            CounterMetricFamily(
                "rdq_database_outages", "How often it lost its database.", labels=[]
            ),
            CounterMetricFamily(
                "rdq_log_lines_left_out",
                "Lines of the log that nobody took: it is not read, or the disk is full.",
                labels=[],
            ),
        ]


_GAUGES: Final = {
    "due": "Tasks that could run now.",
    "scheduled": "Tasks that wait for their time: retries, and what was submitted for later.",
    "in_flight": "Tasks that some worker holds, the expired ones too.",
    "expired": "Tasks whose lease has ended and that nobody has reclaimed.",
    "dead": "Dead letters.",
    "oldest_due_age_seconds": "How long the longest due task has been due; 0 if none is.",
    "oldest_dead_age_seconds": "How long the oldest dead letter has been dead; 0 if none is.",
    "paused": "1 while the queue is paused.",
    "runners": "Runners that work on the queue and were seen within 30 seconds.",
    "stats_age_seconds": "How long ago due, scheduled and dead were counted; 0 if just now.",
}


_OPEN: Final = ("RUNNING", "PAUSED", "HALTED")


@dataclass(frozen=True)
class _Answer:
    queues: list[QueueStats]
    redrives: dict[str, int]


class QueueGauges(Collector):
    """The queues that the runner's role may see, by two queries a scrape.

    It is asked in a thread with a connection of its own, for a bounded time; without an answer the
    gauges are left out, and ``rdq_database_scrape_success`` is 0. Such a failure is nobody else's:
    it does not count as an outage.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recounts = Recounts(database)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._asked = False
        self._closed = False
        self._answer: _Answer | None = None
        self._answered_at = float("-inf")
        self._failing = False

    def describe(self) -> Iterable[Metric]:
        """Name the metrics, without asking the database."""
        yield from self._families().values()
        yield self._redrives()
        yield self._success()

    def collect(self) -> Iterator[Metric]:
        """Give the values; none but the failure if the database does not answer."""
        answer = self._ask()
        families = self._families()
        redrives = self._redrives()
        if answer:
            for stats in answer.queues:
                for name, family in families.items():
                    family.add_metric([stats.queue], getattr(stats, name))
            for state in _OPEN:
                redrives.add_metric([state], answer.redrives.get(state, 0))
        yield from families.values()
        yield redrives
        success = self._success()
        success.add_metric([], answer is not None)
        yield success

    def close(self) -> None:
        """End the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._recounts.close()

    def _families(self) -> dict[str, GaugeMetricFamily]:
        return {
            name: GaugeMetricFamily(f"rdq_queue_{name}", text, labels=["queue"])
            for name, text in _GAUGES.items()
        }

    def _redrives(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "rdq_redrives", "Bulk redrives that have not come to their end.", labels=["state"]
        )

    def _success(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(
            "rdq_database_scrape_success",
            "0 if the database did not answer in time: the rdq_queue_… gauges are missing then.",
            labels=[],
        )

    def _ask(self) -> _Answer | None:
        asked_at = time.monotonic()
        with self._changed:
            if self._closed:
                return None
            if asked_at - self._answered_at > CACHE_SECONDS:
                self._asked = True
                self._changed.notify_all()
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(
                        target=self._work, name="rdq-queuegauges", daemon=True
                    )
                    self._thread.start()
                if not self._changed.wait_for(lambda: not self._asked, ANSWER_SECONDS):
                    return None
            return self._answer

    def _work(self) -> None:
        connection: psycopg.Connection | None = None
        try:
            while self._wanted():
                answer, too_much = None, False
                try:
                    connection = connection or self._database.connect(PATIENCE_SECONDS)
                    rdq = Functions(connection)
                    with rdq.within(STATEMENT_SECONDS):
                        answer = _Answer(rdq.recent_queue_stats(), rdq.open_redrives())
                except psycopg.Error as error:
                    self._say(error)
                    too_much = isinstance(error, psycopg.errors.QueryCanceled)
                    if connection:
                        connection.close()
                        connection = None
                else:
                    self._failing = False
                    too_much = any(stats.recount_due for stats in answer.queues)
                with self._changed:
                    self._answer, self._answered_at = answer, time.monotonic()
                    self._asked = False
                    self._changed.notify_all()
                if too_much:
                    self._recounts.begin()
        finally:
            if connection:
                connection.close()

    def _wanted(self) -> bool:
        """Wait for a scrape; False when there is none for long: the next begins a new thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._closed, IDLE_SECONDS)
            if not self._asked or self._closed:
                self._thread = None
                return False
            return True

    def _say(self, error: psycopg.Error) -> None:
        if not self._failing:
            self._failing = True
            say(
                logging.WARNING,
                "no gauges of the queues",
                sqlstate=error.sqlstate,
                error_type=type(error).__name__,
            )
