"""How the queues stand is the same whichever runner one asks, and costs one bounded query."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rdq_runner import gauges
from rdq_runner.gauges import QueueGauges
from rdq_runner.sessions import Database
from tests.observability.conftest import Scrape, Watch
from tests.runner.conftest import Hold, Queue
from tests.waiting import wait_until


def depths(scrape: Scrape) -> dict[str, float]:
    """Return what a scrape says of the queue q, without what grows by itself."""
    return {
        name: scrape.value(name, queue="q")
        for name in scrape.names
        if name.startswith("rdq_queue_") and "age" not in name
    }


def test_two_runners_give_the_same_gauges(queue: Queue, watch: Watch, hold: Hold) -> None:
    queue.alter(max_attempts=1)
    queue.db.execute("select rdq.create_queue('empty')")
    one, two = watch("--concurrency", "1").site, watch().site
    queue.wait_for("DEAD", queue.submit("fail", **{"class": "PERMANENT"}))
    queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    queue.db.execute("select rdq.submit('q', 'ok', '', run_at => now() + interval '1 hour')")
    queue.db.execute("select rdq.pause_queue('q', 'test')")
    for _ in range(3):
        queue.submit("ok")
    queue.db.execute("update rdq.due set due_at = due_at - interval '1 hour' where due_at <= now()")
    expected = {
        "rdq_queue_due": 3,
        "rdq_queue_scheduled": 1,
        "rdq_queue_in_flight": 1,
        "rdq_queue_expired": 0,
        "rdq_queue_dead": 1,
        "rdq_queue_paused": 1,
        "rdq_queue_runners": 2,
    }
    for site in (one, two):
        site.wait_for(2, "rdq_queue_runners", queue="q")
        scrape = site.wait_for(3, "rdq_queue_due", queue="q")
        assert depths(scrape) == expected
        assert scrape.value("rdq_queue_oldest_due_age_seconds", queue="q") > 3600
        assert 0 < scrape.value("rdq_queue_oldest_dead_age_seconds", queue="q") < 60
        assert scrape.values_of("rdq_queue_oldest_due_age_seconds", queue="empty") == [0]
        assert scrape.value("rdq_queue_runners", queue="empty") == 0
        assert scrape.values_of("rdq_queue_stats_age_seconds") == [0, 0]
        assert scrape.value("rdq_database_scrape_success") == 1


def test_a_lease_that_nobody_reclaims_is_seen_as_expired(queue: Queue, watch: Watch) -> None:
    queue.db.execute("select rdq.create_queue('other')")
    queue.db.execute("select rdq.submit('other', 'ok', '')")
    queue.db.execute("select rdq.claim('{other}', 'psql', lease => '1 second')")
    # A runner that may not work there does not take it back.
    with role(queue, "worker", "{q}") as user:
        queue.db.execute("select rdq.grant_access(%s, 'viewer', '{*}')", [user])
        site = watch(dsn=make_conninfo(queue.db.info.dsn, user=user)).site
        scrape = site.wait_for(1, "rdq_queue_expired", queue="other")
        assert scrape.value("rdq_queue_in_flight", queue="other") == 1


def test_a_runner_that_may_not_look_says_so_and_works(queue: Queue, watch: Watch) -> None:
    with role(queue, "worker", "{q}") as user:
        watched = watch(dsn=make_conninfo(queue.db.info.dsn, user=user))
        queue.wait_for("SUCCEEDED", queue.submit("ok"))
        for _ in range(3):
            scrape = watched.site.scrape()
        assert scrape.values_of("rdq_database_scrape_success") == [0]
        assert scrape.values_of("rdq_queue_due") == []
        assert scrape.value("rdq_database_outages_total") == 0
        assert watched.site.status("/readyz") == 200
        said = [e for e in watched.process.events if e["event"] == "no gauges of the queues"]
        assert [e["sqlstate"] for e in said] == ["42501"]
        watched.process.stop()


def test_a_locked_table_holds_up_a_scrape_for_seconds_only(queue: Queue, watch: Watch) -> None:
    site = watch().site
    site.wait_for(1, "rdq_database_scrape_success")
    with psycopg.connect(queue.db.info.dsn) as locking:
        locking.execute("lock table rdq.dead in access exclusive mode")
        # The answer before is kept for a second; `Site` waits for one no longer than some more.
        scrape = site.wait_for(0, "rdq_database_scrape_success")
        assert scrape.values_of("rdq_database_scrape_success") == [0]
        assert scrape.values_of("rdq_slots") == [8]
    site.wait_for(1, "rdq_database_scrape_success")


def test_scrapes_within_a_second_ask_once(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gauges.CACHE_SECONDS == 1.0
    queue.submit("ok")
    client = Database(queue.db.info.dsn, "test")
    collector = QueueGauges(client)
    try:
        monkeypatch.setattr(gauges, "CACHE_SECONDS", 3600.0)
        ages = {tuple(oldest(collector)) for _ in range(5)}
        assert len(ages) == 1
        monkeypatch.setattr(gauges, "CACHE_SECONDS", 0.1)
        queue.db.execute("update rdq.due set due_at = due_at - interval '1 hour'")
        wait_until(lambda: [*oldest(collector)] > [3600.0])
    finally:
        collector.close()
        client.close()


def oldest(collector: QueueGauges) -> Iterator[float]:
    """Yield the ages of the oldest due tasks."""
    for family in collector.collect():
        if family.name == "rdq_queue_oldest_due_age_seconds":
            yield from (sample.value for sample in family.samples)


@contextmanager
def role(queue: Queue, capability: str, queues: str) -> Iterator[str]:
    """Make a role that may do one thing."""
    name = f"rdq_test_{queue.db.info.dbname[-12:]}"
    queue.db.execute(f"create role {name} login")
    queue.db.execute("select rdq.grant_access(%s, %s, %s)", [name, capability, queues])
    try:
        yield name
    finally:
        queue.db.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = %s",
            [name],
        )
        queue.db.execute(f"drop owned by {name}")
        queue.db.execute(f"drop role {name}")
