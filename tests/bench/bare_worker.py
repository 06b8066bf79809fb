"""``python -m tests.bench.bare_worker DSN BATCH``: the worker of bare SQL, a loop in one thread.

It claims a batch, runs it and settles it, with nothing in between: no lease to renew, no slot to
fill, no log, no signal.
"""

import sys
import traceback
from typing import Any

import psycopg

from tests.bench import work
from tests.bench.contenders.bare_sql import CLAIM, COMPLETE, FAIL

POLL_SECONDS = 5.0


def main(dsn: str, batch: int) -> None:
    """Work until killed."""
    with psycopg.connect(dsn, autocommit=True, application_name="bare-worker") as connection:
        connection.execute("listen ready")
        while True:
            rows = connection.execute(CLAIM, [batch], binary=True).fetchall()
            if rows:
                settle(connection, rows)
            else:
                for _ in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                    pass


def settle(connection: psycopg.Connection[Any], rows: list[Any]) -> None:
    """Run a batch, and store how each task ended."""
    done: list[int] = []
    failed: list[int] = []
    stacks: list[str] = []
    for number, kind, payload, attempt in rows:
        try:
            run(kind, payload, attempt)
        except Exception:
            failed.append(number)
            stacks.append(traceback.format_exc())
        else:
            done.append(number)
    with connection.transaction():
        if done:
            connection.execute(COMPLETE, [done])
        if failed:
            connection.execute(FAIL, [failed, stacks])


def run(kind: str, payload: str, attempt: int) -> None:
    """Do the work of a task."""
    if kind in ("storm", "storm async"):
        work.storm(attempt)
    elif kind == "doom":
        work.fail()
    elif kind == "stamp":
        work.stamp(payload.encode())
    elif kind == "mostly":
        work.mostly(attempt, int(payload[:12]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
