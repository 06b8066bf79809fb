"""Real runners, each a process of its own."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from tests.waiting import LONGEST_SECONDS, wait_until

ROOT = Path(__file__).parents[2]


class RunnerProcess:
    """``rdq-runner run`` on a queue, with the handlers of `tests.runner.behaviours` by default."""

    def __init__(self, dsn: str, folder: Path, *options: str, queue: str = "q") -> None:
        self._log = folder / f"runner-{uuid4().hex}.log"
        command = [sys.executable, "-m", "rdq_runner", "run", "--dsn", dsn, "--queue", queue]
        if "--handlers" not in options:
            command += ["--handlers", "tests.runner.behaviours"]
        with self._log.open("w") as log:
            self.process = subprocess.Popen([*command, *options], cwd=ROOT, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def output(self) -> str:
        """All that it printed."""
        return self._log.read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its log, a JSON object a line; other lines are left out."""
        return [json.loads(line) for line in self.output.splitlines() if line.endswith("}")]

    def has_said(self, event: str) -> bool:
        """Whether the event is in the log."""
        return any(line["event"] == event for line in self.events)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def ended(self, seconds: float = LONGEST_SECONDS) -> int:
        """Wait for the end; return the exit code."""
        return self.process.wait(seconds)

    def stop(self) -> int:
        """End it as a deploy does."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        """End it as a crash does."""
        self.signal(signal.SIGKILL)
        self.ended()

    def wait_for(self, event: str) -> None:
        """Wait until the event is in the log."""
        wait_until(lambda: self.has_said(event))
