"""Runners that are watched over HTTP, as Prometheus and an orchestrator do."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.runner.conftest import hold, queue, run, start  # noqa: F401  (fixtures)
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until

Labels = frozenset[tuple[str, str]]


class Scrape(dict[tuple[str, Labels], float]):
    """The samples of one scrape."""

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples that have these labels, at least."""
        return sum(self.values_of(name, **labels))

    def values_of(self, name: str, **labels: str) -> list[float]:
        """Return the samples that have these labels, at least."""
        wanted = labels.items()
        return [v for (other, has), v in self.items() if other == name and wanted <= set(has)]

    @property
    def names(self) -> dict[str, set[str]]:
        """The names, each with its labels."""
        names: dict[str, set[str]] = {}
        for name, labels in self:
            names.setdefault(name, set()).update(label for label, _ in labels)
        return names


class Site:
    """What is served on a port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, seconds: float = 15) -> tuple[int, str]:
        """Return the status and the body of a page."""
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=seconds) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def status(self, path: str) -> int:
        """Return the status of a page."""
        return self.get(path)[0]

    def scrape(self) -> Scrape:
        """Return the metrics."""
        status, text = self.get("/metrics")
        assert status == 200, text
        scrape = Scrape()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                scrape[sample.name, frozenset(sample.labels.items())] = sample.value
        return scrape

    def wait_for(self, value: float, name: str, **labels: str) -> Scrape:
        """Wait until a metric has a value."""
        scrape = Scrape()

        def has_it() -> bool:
            scrape.clear()
            scrape.update(self.scrape())
            return scrape.value(name, **labels) == value

        wait_until(has_it)
        return scrape


class Watched:
    """A runner's process, and its site."""

    def __init__(self, process: RunnerProcess) -> None:
        self.process = process
        self.site = Site(wait_until(self._port) or 0)

    def _port(self) -> int | None:
        assert self.process.process.poll() is None, self.process.output
        return next(
            (e["port"] for e in self.process.events if e["event"] == "metrics are served"), None
        )


class Watch(Protocol):
    """Starts a runner's process, by default on the test's database."""

    def __call__(self, *options: str, dsn: str | None = None) -> Watched: ...


@pytest.fixture
def watch(database: str, tmp_path: Path) -> Iterator[Watch]:
    started: list[RunnerProcess] = []

    def start_watched(*options: str, dsn: str | None = None) -> Watched:
        always = ["--metrics-port", "0", "--handlers", "tests.observability.handlers"]
        started.append(RunnerProcess(dsn or database, tmp_path, *always, *options))
        return Watched(started[-1])

    yield start_watched
    for runner in started:
        runner.kill()
