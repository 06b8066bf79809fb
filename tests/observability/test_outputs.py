"""A log that nobody reads, or that finds no room, holds nothing up; what is lost is counted."""

import json
import logging
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdq_runner import outputs
from rdq_runner.logs import JsonFormatter, Lines
from tests.observability.conftest import Site
from tests.runner.conftest import Queue
from tests.runner.processes import ROOT, RunnerProcess
from tests.waiting import wait_until


class Pipe:
    """What a process writes to, and somebody may read."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        self.stream = os.fdopen(writer, "w")

    def fill(self) -> None:
        """Leave no room in it."""
        descriptor = self.stream.fileno()
        os.set_blocking(descriptor, False)
        try:
            while True:
                os.write(descriptor, b"\n" * 4096)
        except BlockingIOError:
            os.set_blocking(descriptor, True)

    def read_all(self) -> list[str]:
        """Return the lines that are in it, without the empty ones."""
        os.set_blocking(self.reader, False)
        text = b""
        try:
            while part := os.read(self.reader, 65536):
                text += part
        except BlockingIOError:
            pass
        return [line for line in text.decode().splitlines() if line]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    os.close(pipe.reader)
    pipe.stream.close()


def test_who_writes_does_not_wait_and_lines_without_room_are_counted_and_told(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "MOST_LINES", 10)
    own = Lines(JsonFormatter(), pipe.stream)
    pipe.fill()
    own.write(logging.INFO, "first", [{}])
    wait_until(lambda: own.output._busy)
    for number in range(12):
        own.write(logging.INFO, "attempt ended", [{"number": number}])
    assert own.output.left_out == 2
    assert not own.output.flush(0.05)
    seen: list[str] = []

    def told() -> bool:
        seen.extend(pipe.read_all())
        return any("left out" in line for line in seen)

    wait_until(told)
    lines = [json.loads(line) for line in seen]
    assert [line["event"] for line in lines if line["event"] != "attempt ended"] == [
        "first",
        "log lines were left out",
    ]
    assert [line["number"] for line in lines if "number" in line] == [*range(10)]
    assert [line["count"] for line in lines if "count" in line] == [2]


def test_a_batch_that_is_longer_than_the_room_is_written_where_nothing_waits(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "MOST_LINES", 10)
    own = Lines(JsonFormatter(), pipe.stream)
    own.write(logging.INFO, "attempt ended", [{"number": number} for number in range(30)])
    assert own.output.flush()
    assert len(pipe.read_all()) == 30


def test_a_record_that_cannot_be_formatted_is_a_line_and_no_error(pipe: Pipe) -> None:
    own = Lines(JsonFormatter(), pipe.stream)
    own.handle(logging.LogRecord("theirs", logging.INFO, __file__, 1, "%d", ("no number",), None))
    own.flush()
    [line] = pipe.read_all()
    assert json.loads(line)["of"] == "theirs"


def test_a_fork_logs_for_itself(pipe: Pipe) -> None:
    own = Lines(JsonFormatter(), pipe.stream)
    own.write(logging.INFO, "parent", [{}])
    own.flush()
    if (pid := os.fork()) == 0:
        own.write(logging.INFO, "child", [{}])
        os._exit(0 if own.output.flush() else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert [json.loads(line)["event"] for line in pipe.read_all()] == ["parent", "child"]


@pytest.fixture(params=["a pipe that nobody reads", "a full disk"])
def no_room(request: pytest.FixtureRequest) -> Iterator[int]:
    """What standard error is, of a process whose log goes nowhere."""
    if request.param == "a full disk":
        descriptor = os.open("/dev/full", os.O_WRONLY)
        yield descriptor
        os.close(descriptor)
        return
    pipe = Pipe()
    pipe.fill()
    yield pipe.stream.fileno()
    os.close(pipe.reader)
    pipe.stream.close()


@pytest.fixture
def unused_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def test_a_runner_whose_log_goes_nowhere_works_and_stops(
    queue: Queue, database: str, no_room: int, unused_port: int
) -> None:
    command = [sys.executable, "-m", "rdq_runner", "run", "--dsn", database, "--queue", "q"]
    command += ["--handlers", "tests.runner.behaviours", "--metrics-port", str(unused_port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=no_room, stderr=no_room)
    try:
        # Far more than a pipe holds, of which each line says something.
        queue.wait_for("SUCCEEDED", *[queue.submit("ok") for _ in range(300)])
        [left_out] = Site(unused_port).scrape().values_of("rdq_log_lines_left_out_total")
        # Of a pipe somebody may read some day.
        assert (left_out > 300) is not stat.S_ISFIFO(os.fstat(no_room).st_mode)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_folder_for_metrics_that_is_not_there_is_said(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "none"))
    runner = RunnerProcess(database, tmp_path)
    assert runner.ended() == 1
    assert runner.output.startswith("Error: PROMETHEUS_MULTIPROC_DIR is ")
    assert "Traceback" not in runner.output
