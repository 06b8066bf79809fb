"""The times at which handlers begin, which workers of any language write to a pipe."""

import os
import select
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.bench.stage import TooSlow
from tests.bench.work import STAMPS_VARIABLE

ANSWER_SECONDS: Final = 30.0


class Stamps:
    """A pipe, whose name is in the environment of the processes that are started meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "stamps"
        self._known: dict[str, int] = {}
        self._rest = b""

    def __enter__(self) -> Self:
        self._path.unlink(missing_ok=True)
        os.mkfifo(self._path)
        os.environ[STAMPS_VARIABLE] = str(self._path)
        # Also for writing, so that it never ends.
        self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)
        self._path.unlink()

    def wait(self, text: str) -> int:
        """Return when the handler of the task with this payload began, by `time.monotonic_ns`.

        :raises TooSlow: it did not within 30 seconds.
        """
        deadline = time.monotonic() + ANSWER_SECONDS
        while text not in self._known:
            ready, _, _ = select.select([self._pipe], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TooSlow(f"no handler began within {ANSWER_SECONDS:g} s")
            *lines, self._rest = (self._rest + os.read(self._pipe, 65536)).split(b"\n")
            for line in lines:
                payload, _, at = line.decode().rpartition(" ")
                self._known[payload] = int(at)
        return self._known.pop(text)


def quantiles(milliseconds: Sequence[float], suffix: str = "") -> dict[str, float]:
    """Summarize latencies, under names that end so."""
    known = [*milliseconds, max(milliseconds)] if len(milliseconds) == 1 else milliseconds
    cuts = statistics.quantiles(known, n=100, method="inclusive")
    return {
        f"p50{suffix}, ms": cuts[49],
        f"p99{suffix}, ms": cuts[98],
        f"max{suffix}, ms": max(milliseconds),
    }
