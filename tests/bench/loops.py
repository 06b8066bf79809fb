"""A loop in one thread as the worker of a contender, instead of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.processes import running
from tests.bench.stage import Stage


def ready(workers: int, claims: str) -> str:
    """Return a question in SQL: have so many loops found nothing, and wait?

    :param claims: a part of the statement that claims.
    """
    return f"""
        /* bench */ select count(*) >= {workers}
        from pg_stat_activity
        where datname = current_database() and application_name = 'loop-worker'
          and state = 'idle' and query like '%{claims}%'
        """


@contextmanager
def worker(stage: Stage, name: str, batch: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a loop over the statements of the contender of this name."""
    command = [sys.executable, "-m", "tests.bench.loop_worker", stage.dsn, str(batch), name]
    with running(command, stage.log("loop-worker")) as process:
        yield process
