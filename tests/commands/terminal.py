"""A command in a terminal: what it prints, what is typed, how it ends."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import LONGEST_SECONDS

ROOT = Path(__file__).parents[2]

# Variables that would decide instead of the terminal.
_NOT_OURS = ("RDQ_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_")


class Terminal:
    """``rdq-runner`` with its input and output in a terminal.

    :param piped: its stdout goes to a pipe, so that only stderr is seen.
    """

    def __init__(
        self, dsn: str, *arguments: object, columns: int = 100, piped: bool = False, **env: str
    ) -> None:
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(_NOT_OURS)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rdq_runner", *map(str, arguments)],
            cwd=ROOT,
            env=inherited | {"RDQ_DSN": dsn, "TERM": "xterm-256color"} | env,
            stdin=secondary,
            stdout=subprocess.PIPE if piped else secondary,
            stderr=secondary,
            start_new_session=True,
        )
        os.close(secondary)
        self.output = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        os.close(self._primary)

    def expect(self, text: str, times: int = 1, seconds: float = LONGEST_SECONDS) -> None:
        """Read until a text has appeared so many times."""
        deadline = time.monotonic() + seconds
        while self.output.count(text) < times:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"no {text!r} in {self.output!r}")

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._primary, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def ended(self, seconds: float = LONGEST_SECONDS) -> int:
        """Read to the end; return the exit status."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(deadline - time.monotonic(), 1))

    def result(self) -> str:
        """Return what it wrote to the pipe."""
        assert self.process.stdout is not None
        return self.process.stdout.read().decode()

    def _read(self, seconds: float) -> bool:
        """Read what there is, waiting for it; return whether there was anything."""
        if not select.select([self._primary], [], [], max(seconds, 0))[0]:
            return False
        try:
            read = os.read(self._primary, 65536)
        except OSError:  # the other end is closed
            return False
        self.output += read.decode(errors="replace")
        return bool(read)
