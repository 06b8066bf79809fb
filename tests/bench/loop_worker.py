"""``python -m tests.bench.loop_worker DSN BATCH CONTENDER``: a worker, a loop in one thread.

It claims a batch, runs it and settles it, with nothing in between: no lease to renew, no slot to
fill, no log, no signal. It is the worker of bare SQL; of rdq it tells what the functions cost
without the runner.
"""

import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final

import psycopg

from tests.bench import work
from tests.bench.contender import Held, Loops
from tests.bench.contenders.bare_sql import BareSql
from tests.bench.contenders.rdq import Rdq

POLL_SECONDS: Final = 5.0
CONTENDERS: Final[Mapping[str, Loops]] = {BareSql.name: BareSql(), Rdq.name: Rdq()}


def main(dsn: str, batch: int, contender: Loops) -> None:
    """Work until killed."""
    with psycopg.connect(dsn, autocommit=True, application_name="loop-worker") as connection:
        connection.execute(f"listen {contender.channel}".encode())
        while True:
            if held := contender.hold(connection, batch):
                settle(contender, connection, held)
            else:
                for _ in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                    pass


def settle(contender: Loops, connection: psycopg.Connection[Any], held: list[Held]) -> None:
    """Run a batch, and store how each task ended."""
    done: list[Held] = []
    failed: list[tuple[Held, str]] = []
    for one in held:
        try:
            run(one)
        except Exception:
            failed.append((one, traceback.format_exc()))
        else:
            done.append(one)
    contender.settle(connection, done, failed)


def run(held: Held) -> None:
    """Do the work of a task."""
    if held.work.startswith("storm"):
        work.storm(held.attempt)
    elif held.work == "doom":
        work.fail()
    elif held.work == "stamp":
        work.stamp(held.payload.encode())
    elif held.work == "mostly":
        work.mostly(held.attempt, int(held.payload[:12]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), CONTENDERS[sys.argv[3]])
