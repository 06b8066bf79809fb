"""Counts agree with the history, whatever became of the attempts."""

import json

import pytest
from prometheus_client import CollectorRegistry

from rdq_runner.logs import MOST_WARNINGS
from rdq_runner.metrics import MOST_PAIRS, OTHER, UNKNOWN, Metrics
from rdq_runner.rows import Tick
from rdq_runner.upkeep import Upkeep
from tests.observability.conftest import Watch
from tests.runner.conftest import Hold, Queue, Start
from tests.waiting import wait_until

HOUR = {"ladder": ["1 hour"], "jitter": 0}


def wait_until_listening(queue: Queue, runners: int) -> None:
    """Wait until so many runners hear of deaths: what died before that is in no runner's count."""
    listening = (
        "select count(*) from pg_stat_activity"
        " where query = 'listen rdq_due' and datname = current_database()"
    )
    wait_until(lambda: queue.db.execute(listening).fetchone() == (runners,))


def test_attempts_are_counted_by_outcome_and_error_class(queue: Queue, watch: Watch) -> None:
    queue.alter(**HOUR)
    site = watch().site
    for _ in range(2):
        queue.submit("ok")
    for kind in ("TRANSIENT", "PERMANENT", "AMBIGUOUS", "none of these"):
        queue.submit("fail", **{"class": kind})
    failed = {"queue": "q", "handler": "fail", "outcome": "FAILED"}
    site.wait_for(2, "rdq_attempts_total", queue="q", handler="ok", outcome="SUCCEEDED")
    site.wait_for(4, "rdq_attempts_total", **failed)
    # These are counted after that, one by one.
    site.wait_for(3, "rdq_retries_total", handler="fail")
    scrape = site.wait_for(1, "rdq_dead_letters_total", handler="fail")
    # What nothing classifies is AMBIGUOUS.
    for kind, count in {"TRANSIENT": 1, "PERMANENT": 1, "AMBIGUOUS": 2}.items():
        assert scrape.value("rdq_attempts_total", **failed, error_class=kind) == count
    assert scrape.value("rdq_dead_letters_total", handler="fail", reason="PERMANENT") == 1
    assert scrape.value("rdq_attempt_duration_seconds_count", handler="fail") == 4
    assert scrape.value("rdq_claim_latency_seconds_count", queue="q") == 6


def test_a_success_after_a_failure_counts_as_one_after_a_retry(queue: Queue, watch: Watch) -> None:
    site = watch().site
    queue.submit("ok")
    queue.submit("flaky")
    scrape = site.wait_for(1, "rdq_successes_after_retry_total", queue="q", handler="flaky")
    assert scrape.value("rdq_retries_total", handler="flaky") == 1
    # A retry waits from when it is due, not from the submit.
    assert scrape.value("rdq_claim_latency_seconds_count", handler="flaky") == 2
    assert scrape.value("rdq_claim_latency_seconds_sum", handler="flaky") < 5
    site.wait_for(1, "rdq_attempts_total", handler="ok", outcome="SUCCEEDED")
    assert site.scrape().value("rdq_successes_after_retry_total", handler="ok") == 0


def test_a_lost_lease_is_counted_when_it_is_lost_and_its_report_as_stale(
    queue: Queue, watch: Watch, hold: Hold
) -> None:
    queue.alter(lease="3 seconds", **HOUR)
    site = watch().site
    task = queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    scrape = site.wait_for(1, "rdq_in_flight", queue="q", handler="hold")
    assert scrape.value("rdq_heartbeats_lost_total") == 0
    queue.take_back(task)
    site.wait_for(1, "rdq_heartbeats_lost_total", queue="q", handler="hold")
    hold.end()
    scrape = site.wait_for(1, "rdq_attempts_total", handler="hold", outcome="STALE")
    assert scrape.value("rdq_attempts_total") == 1
    assert scrape.value("rdq_successes_after_retry_total") == 0


def test_a_dead_letter_that_a_claim_makes_is_counted_by_that_runner_alone(
    queue: Queue, watch: Watch, hold: Hold
) -> None:
    queue.alter(lease="3 seconds", max_attempts=1)
    victim = watch()
    task = queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    sites = [watch().site for _ in range(2)]
    wait_until_listening(queue, 3)
    victim.process.kill()
    queue.wait_for("DEAD", task)
    deaths = {"queue": "q", "handler": "hold", "reason": "VANISHED"}

    def counted() -> float:
        return sum(site.scrape().value("rdq_dead_letters_total", **deaths) for site in sites)

    wait_until(counted)
    # Both have heard of it by now: another notice is behind it.
    after = queue.submit("fail", **{"class": "PERMANENT"})
    queue.wait_for("DEAD", after)
    wait_until(lambda: counted() == 1)


def test_a_task_that_nobody_can_run_is_counted_when_it_dies(queue: Queue, watch: Watch) -> None:
    queue.alter(max_attempts=1, max_releases=0)
    site, other = watch().site, watch().site
    wait_until_listening(queue, 2)
    queue.wait_for("DEAD", queue.submit("nowhere"))
    deaths = {"queue": "q", "handler": UNKNOWN, "reason": "UNROUTABLE"}

    def counted() -> float:
        return sum(
            each.scrape().value("rdq_dead_letters_total", **deaths) for each in (site, other)
        )

    wait_until(lambda: counted() == 1)
    assert counted() == 1


def test_a_counter_is_there_before_it_counts(queue: Queue, watch: Watch) -> None:
    site = watch().site
    queue.submit("ok")
    scrape = site.wait_for(1, "rdq_attempts_total", handler="ok", outcome="SUCCEEDED")
    for reason in ("EXHAUSTED", "VANISHED"):
        assert scrape.values_of("rdq_dead_letters_total", handler="ok", reason=reason) == [0]
    assert scrape.values_of("rdq_heartbeats_lost_total", handler="ok") == [0]


def test_an_application_shows_the_metrics_in_its_own_registry(queue: Queue, start: Start) -> None:
    registry = CollectorRegistry(auto_describe=True)
    runner = start(registry=registry)
    labels = {"queue": "q", "handler": "ok", "outcome": "SUCCEEDED", "error_class": ""}
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    wait_until(lambda: registry.get_sample_value("rdq_attempts_total", labels) == 1)
    assert registry.get_sample_value("rdq_queue_dead", {"queue": "q"}) == 0
    with pytest.raises(ValueError, match="Duplicated"):
        start(registry=registry)
    assert registry.get_sample_value("rdq_attempts_total", labels) == 1
    runner.stop()
    assert list(registry.collect()) == []
    start(registry=registry)


def announce(metrics: Metrics, handler: str) -> None:
    """Have a dead letter of a handler counted."""
    notice = {"queue": "q", "handler": handler, "reason": "VANISHED", "count": 2}
    metrics.announced(json.dumps(notice), "claims")


def vanished(registry: CollectorRegistry, handler: str) -> float | None:
    """Return how many dead letters of a handler were counted."""
    labels = {"queue": "q", "handler": handler, "reason": "VANISHED"}
    return registry.get_sample_value("rdq_dead_letters_total", labels)


def test_handlers_without_end_do_not_fill_the_memory() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    for number in range(MOST_PAIRS + 10):
        announce(metrics, f"h{number}")
    assert vanished(registry, OTHER) == 20


def test_handlers_that_nobody_has_take_the_label_of_none_that_is_here() -> None:
    registry = CollectorRegistry()
    here = {"h"}
    metrics = Metrics(registry, lambda queue, handler: handler in here)
    for number in range(2 * MOST_PAIRS):
        announce(metrics, f"unknown{number}")
    announce(metrics, "h")
    assert (vanished(registry, UNKNOWN), vanished(registry, "h")) == (4 * MOST_PAIRS, 2)
    # As an endpoint that is registered while the runner works.
    here.add("unknown1")
    announce(metrics, "unknown1")
    assert vanished(registry, "unknown1") == 2
    assert len(next(iter(registry.collect())).samples) < 50


def test_tasks_of_handlers_that_nobody_has_cost_few_lines_and_one_label(
    queue: Queue, watch: Watch
) -> None:
    watched = watch()
    with queue.db.transaction():
        for number in range(300):
            queue.submit(f"unknown{number}")
    watched.site.wait_for(300, "rdq_attempts_total", handler=UNKNOWN, outcome="RELEASED")
    queue.submit("ok")
    scrape = watched.site.wait_for(1, "rdq_attempts_total", handler="ok", outcome="SUCCEEDED")
    handlers = {dict(labels).get("handler") for _, labels in scrape}
    assert handlers == {None, UNKNOWN, "ok"}
    said = [e for e in watched.process.events if e["event"] == "no such handler in this runner"]
    assert 1 <= len(said) <= 2 * MOST_WARNINGS


def test_what_fails_in_a_tick_is_counted_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    upkeep = Upkeep(Metrics(registry))
    caplog.set_level("INFO", "rdq_runner")
    well, ill = Tick(1, 0, 0, 2), Tick(0, 0, 0, 0, ["retention: no, no: never", "redrives: busy"])
    for tick in (well, ill, ill, well, ill):
        upkeep.ticked(tick)
    assert registry.get_sample_value("rdq_upkeep_failures_total") == 6
    assert registry.get_sample_value("rdq_upkeep_total", {"action": "purged"}) == 4
    assert caplog.messages == ["upkeep fails", "upkeep fails", "upkeep works again"]
    fields = [vars(record).get("rdq_fields") for record in caplog.records]
    assert fields[1] == {"part": "retention", "reason": "no, no: never"}


def test_a_part_of_a_tick_that_fails_shows_while_the_work_goes_on(
    queue: Queue, watch: Watch
) -> None:
    watched = watch()
    watched.site.wait_for(0, "rdq_upkeep_failures_total")
    queue.db.execute("alter function rdq._retain rename to retain_away")
    wait_until(lambda: watched.site.scrape().value("rdq_upkeep_failures_total") >= 2)
    queue.wait_for("SUCCEEDED", queue.submit("ok"))
    watched.process.stop()
    [line] = [e for e in watched.process.events if e["event"] == "upkeep fails"]
    assert (line["level"], line["part"]) == ("warning", "retention")
    assert "_retain" in line["reason"]


def test_a_reason_that_is_new_to_a_runner_is_counted() -> None:
    registry = CollectorRegistry()
    notice = {"queue": "q", "handler": "h", "reason": "NEW", "count": 2}
    Metrics(registry).announced(json.dumps(notice), "claims")
    labels = {"queue": "q", "handler": "h", "reason": "NEW"}
    assert registry.get_sample_value("rdq_dead_letters_total", labels) == 2
