"""The demo: what it tells comes true, and it leaves nothing behind but what it was asked to."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psycopg
import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PROC = Path("/proc")
linux = pytest.mark.skipif(not PROC.exists(), reason="looks at processes as Linux shows them")
LONGEST_SECONDS = 60

# Of the end: task, number of the attempt, life, outcome, and what matters of the rest.
KEY_LINES = (
    r"send_receipt +\| +1 \| +0 \| FAILED +\| TRANSIENT +\| orders-1",
    r"send_receipt +\| +3 \| +0 \| (FAILED|SUCCEEDED) ",
    r"ship +\| +1 \| +0 \| FAILED +\| PERMANENT +\| orders-1",
    r"ship +\| +2 \| +1 \| SUCCEEDED ",
    r"resize +\| +3 \| +0 \| LEASE_EXPIRED \| +\| images-3",
    r"resize +\| +4 \| +1 \| SUCCEEDED +\| +\| shop-2 +\| release-2",
    r"price +\| +1 \| +0 \| FAILED +\| AMBIGUOUS +\| +\|",
    r"price +\| +4 \| +1 \| SUCCEEDED +\| +\| shop-2 +\| release-2",
    r"All came true as told, in \d+ s\.",
)


class Demo:
    """A run of ``python -m tools.demo``, in a session of its own as a terminal would give it."""

    def __init__(self, output: Path, *options: str) -> None:
        self._output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tools.demo", *options],
                cwd=ROOT,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """All that it printed."""
        return self._output.read_text()

    @property
    def url(self) -> str:
        """How to connect, as it says."""
        return self._find(r"postgresql://\S+")

    @property
    def folder(self) -> Path:
        """The folder of its server."""
        return Path(self._find(r"/tmp/rdq-pg-\w+"))

    @property
    def commands(self) -> str:
        """What it has started, and what that has, each argument with a NUL after it."""
        parents, commands = {}, {}
        for process in PROC.glob("[0-9]*"):
            # It may have ended since.
            with suppress(OSError):
                stat = (process / "stat").read_text()
                parents[process.name] = stat.rpartition(")")[2].split()[1]
                commands[process.name] = (process / "cmdline").read_text()
        found = {str(self.process.pid)}
        while more := {name for name, parent in parents.items() if parent in found} - found:
            found |= more
        return "".join(commands.get(name, "") for name in found)

    @property
    def descendants(self) -> list[str]:
        """The processes that know its server: the server's own, and runners."""
        found = []
        for process in PROC.glob("[0-9]*"):
            with suppress(OSError):
                if os.fsencode(self.folder) in (process / "environ").read_bytes():
                    found.append(process.name)
        return found

    def wait_for(self, text: str) -> None:
        """Wait until it has printed a text."""
        wait_until(lambda: text in self.output, 30)

    def press_ctrl_c(self) -> None:
        """Interrupt it, and what it has started in the same terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self) -> int:
        """Wait for the end; return the exit code."""
        return self.process.wait(LONGEST_SECONDS)

    def _find(self, pattern: str) -> str:
        found = re.search(pattern, self.output)
        assert found, self.output
        return found[0]


class Start(Protocol):
    """Starts the demo with some options."""

    def __call__(self, *options: str) -> Demo: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Demo] = []

    def start_demo(*options: str) -> Demo:
        started.append(Demo(tmp_path / "output", *options))
        return started[-1]

    yield start_demo
    for demo in started:
        if demo.process.poll() is None:
            demo.press_ctrl_c()
            demo.ended()


def answers(url: str) -> bool:
    """Whether a server with the schema rdq answers."""
    try:
        with psycopg.connect(url) as connection:
            return connection.execute("select rdq.version()").fetchone() is not None
    except psycopg.OperationalError:
        return False


def test_all_comes_true_within_a_minute_and_nothing_stays(start: Start) -> None:
    begin = time.monotonic()
    demo = start()
    assert demo.ended() == 0, demo.output
    assert time.monotonic() - begin < LONGEST_SECONDS
    assert [line for line in KEY_LINES if not re.search(line, demo.output)] == []
    assert not demo.folder.exists()
    assert not answers(demo.url)


def test_an_end_that_differs_from_what_is_told_fails_the_demo(start: Start) -> None:
    demo = start()
    demo.wait_for("waiting until each has failed twice")
    with psycopg.connect(demo.url) as connection:
        connection.execute("select rdq.submit('orders', 'send_receipt', '{}')")
    assert demo.ended() == 1
    assert "Not as told: the receipts that the service has" in demo.output
    assert '"event": "attempt ended"' in demo.output
    assert not demo.folder.exists()


def test_ctrl_c_removes_everything(start: Start) -> None:
    demo = start()
    demo.wait_for("waiting until each has failed twice")
    assert answers(demo.url)
    demo.press_ctrl_c()
    assert demo.ended() == 130
    assert not demo.folder.exists()
    assert not answers(demo.url)


@linux
def test_a_kill_that_cannot_be_heeded_removes_everything_too(start: Start) -> None:
    demo = start()
    demo.wait_for("images-1 is killed")
    assert len(demo.descendants) > 2
    demo.process.kill()
    assert demo.ended() == -signal.SIGKILL
    wait_until(lambda: not demo.descendants)
    assert not demo.folder.exists()


@linux
def test_ctrl_c_while_the_server_is_made_waits_until_it_can_be_removed(start: Start) -> None:
    demo = start()
    wait_until(lambda: "\0--single\0" in demo.commands, 30)
    demo.press_ctrl_c()
    assert demo.ended() == 130
    assert demo.output.split("...")[1].strip() == "Interrupted."


def test_a_kept_server_is_removed_by_the_command_that_the_demo_prints(start: Start) -> None:
    demo = start("--keep")
    demo.wait_for("waiting until each has failed twice")
    demo.press_ctrl_c()
    assert demo.ended() == 130
    assert answers(demo.url)
    _, _, command = demo.output.partition("To stop and remove it:")
    subprocess.run(command.partition("Interrupted.")[0].strip(), shell=True, check=True)
    assert not demo.folder.exists()
    assert not answers(demo.url)
