"""``python -m tests.bench.pacer CONTENDER DSN WORK RATE SECONDS``: submits at a steady rate.

A process of its own, so that it does not stand in the way of what the benchmark measures meanwhile.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg

from tests.bench.contender import Submits, Work
from tests.bench.contenders.bare_sql import BareSql
from tests.bench.contenders.rdq import Rdq
from tests.bench.payloads import payloads
from tests.bench.processes import running
from tests.bench.stage import Stage

CONTENDERS: Final[Sequence[Submits]] = (BareSql(), Rdq())
SESSIONS: Final = 8


@contextmanager
def pacing(
    contender: Submits, stage: Stage, work: Work, rate: float, seconds: float
) -> Iterator[subprocess.Popen[bytes]]:
    """Submit so many a second for so long, or until the block ends."""
    command = [sys.executable, "-m", "tests.bench.pacer", contender.name, stage.dsn, work]
    with running([*command, str(rate), str(seconds)], stage.log("pacer"), may_end=True) as process:
        yield process


def main(name: str, dsn: str, work: Work, rate: float, seconds: float) -> None:
    """Submit, whatever the time that one takes."""
    [contender] = (c for c in CONTENDERS if c.name == name)
    texts = payloads(int(rate * seconds))
    began = time.monotonic()

    def session(first: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            for number in range(first, len(texts), SESSIONS):
                time.sleep(max(began + number / rate - time.monotonic(), 0))
                contender.submit(connection, work, texts[number])

    threads = [threading.Thread(target=session, args=[first]) for first in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))  # type: ignore[arg-type]
