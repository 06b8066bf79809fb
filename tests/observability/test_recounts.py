"""Where counting the queues takes long, it is done aside, and no scrape waits for it."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from rdq_runner import gauges, recounts
from rdq_runner.gauges import QueueGauges
from rdq_runner.sessions import Database
from tests.observability.conftest import Watch
from tests.runner.conftest import Queue
from tests.waiting import wait_until

COUNTING = """
select 1
from pg_stat_activity
where state = 'active' and query like '%refresh_queue_stats%' and datname = current_database()
  and pid <> pg_backend_pid()
"""
AGED = """
update rdq.queue_count set took = '1 minute', counted_at = now() - interval '101 minutes'
"""
FOR_EVER_SECONDS = 60


def let_counting_take(db: psycopg.Connection[object], seconds: float) -> None:
    """Let the walk over the index of each queue take so long."""
    # It says that it is stable, as a count is.
    db.execute(
        f"""
        create or replace function rdq._slow(number bigint) returns bigint
        language plpgsql stable
        as $$
        begin
          perform pg_sleep({seconds});
          return number;
        end
        $$
        """.encode()
    )
    db.execute(
        """
        create or replace view rdq._queue_counts as
        select
          q.queue,
          (select rdq._slow(count(*)) from rdq.due d where d.queue = q.queue) as due,
          0::bigint as scheduled,
          0::bigint as dead,
          null::timestamptz as oldest_dead_at,
          statement_timestamp() as counted_at
        from rdq.queue q
        """
    )


class Gauges:
    """The gauges of a runner that is not there."""

    def __init__(self, database: Database) -> None:
        self.collector = QueueGauges(database)
        self._registry = CollectorRegistry()
        self._registry.register(self.collector)

    def scrape(self) -> dict[str, float]:
        """Return what is told of the queue q, and whether the database answered."""
        return {
            sample.name: sample.value
            for family in self._registry.collect()
            for sample in family.samples
            if sample.labels in ({}, {"queue": "q"})
        }

    def due(self) -> float | None:
        """Return how many tasks are said to be due; None without an answer."""
        return self.scrape().get("rdq_queue_due")


@pytest.fixture
def site(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gauges]:
    monkeypatch.setattr(gauges, "CACHE_SECONDS", 0.0)
    queue.submit("ok")
    client = Database(queue.db.info.dsn, "test")
    site = Gauges(client)
    yield site
    site.collector.close()
    client.close()


def counting(queue: Queue) -> bool:
    return bool(queue.db.execute(COUNTING).fetchall())


def test_a_runner_stores_what_took_long_to_count(queue: Queue, watch: Watch) -> None:
    let_counting_take(queue.db, 0.1)
    queue.db.execute("select rdq.pause_queue('q', 'test')")
    queue.submit("ok")
    site = watch().site
    scrape = site.wait_for(1, "rdq_queue_due", queue="q")
    assert scrape.values_of("rdq_queue_stats_age_seconds") == [0]
    wait_until(lambda: queue.db.execute("select from rdq.queue_count").fetchall())
    # As if it had taken so long.
    queue.db.execute("update rdq.queue_count set took = '1 hour'")
    queue.submit("ok")
    wait_until(lambda: site.scrape().value("rdq_queue_stats_age_seconds"))
    assert site.scrape().value("rdq_queue_due", queue="q") == 1


def test_no_scrape_waits_for_a_recount(queue: Queue, site: Gauges) -> None:
    let_counting_take(queue.db, 0.1)
    assert site.due() == 1
    wait_until(lambda: queue.db.execute("select from rdq.queue_count").fetchall())
    wait_until(lambda: not counting(queue))
    let_counting_take(queue.db, FOR_EVER_SECONDS)
    queue.db.execute(AGED)
    queue.submit("ok")
    began_at = time.monotonic()
    assert site.due() == 1
    wait_until(lambda: counting(queue))
    for _ in range(3):
        scrape = site.scrape()
        assert scrape["rdq_queue_due"] == 1
        assert scrape["rdq_queue_stats_age_seconds"] > 0
    assert counting(queue)
    assert time.monotonic() - began_at < FOR_EVER_SECONDS
    site.collector.close()
    wait_until(lambda: not counting(queue))
    assert time.monotonic() - began_at < FOR_EVER_SECONDS


def test_what_a_scrape_has_no_time_to_count_is_counted_after_it(
    queue: Queue, site: Gauges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauges, "STATEMENT_SECONDS", 0.2)
    let_counting_take(queue.db, 0.5)
    assert site.scrape() == {"rdq_database_scrape_success": 0}
    wait_until(lambda: site.due() == 1)
    assert site.scrape()["rdq_queue_stats_age_seconds"] > 0


def test_a_recount_that_takes_too_long_is_said_and_not_tried_again_at_once(
    queue: Queue,
    site: Gauges,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(gauges, "STATEMENT_SECONDS", 0.2)
    monkeypatch.setattr(recounts, "STATEMENT_SECONDS", 0.5)
    let_counting_take(queue.db, FOR_EVER_SECONDS)
    said = "the queues are not counted"
    assert site.due() is None
    wait_until(lambda: said in caplog.messages)
    wait_until(lambda: not recount_threads())
    # Each takes less long than a recount would be under way.
    for _ in range(3):
        assert site.due() is None
        assert not recount_threads()
    assert caplog.messages.count(said) == 1


def recount_threads() -> list[str]:
    """Return the threads that have the queues counted."""
    return [thread.name for thread in threading.enumerate() if thread.name == "rdq-recount"]
