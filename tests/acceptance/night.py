"""Somebody on call: at a terminal with `rdq-runner` and psql, and docs/dead-letters.md open."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg

from tests.docs import night
from tools.postgres import embedded_binaries, system_binaries

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 300

Row = dict[str, Any]


@dataclass(frozen=True)
class OnCall:
    """Types only what the page shows.

    :param actor: whom the audit names.
    """

    dsn: str
    actor: str

    def rows(self, *words: object, exits: int = 0) -> list[Row]:
        """Run a command of ``rdq-runner``, and return its answer, a dict a row."""
        return self._run([*map(str, words), "--jsonl"], exits)

    def row(self, *words: object, exits: int = 0) -> Row:
        """Return the last row of the answer."""
        return self.rows(*words, exits=exits)[-1]

    def document(self, *words: object, exits: int = 0) -> Any:
        """Run a command whose answer is one document."""
        return json.loads(self._start([*map(str, words), "--json"], exits))

    def text(self, *words: object) -> str:
        """Return what a command prints."""
        return self._start([*map(str, words)], 0)

    def psql(self, statement: str) -> list[list[str]]:
        """Return the rows of a statement in psql, as text."""
        assert night.shows_statement(statement), f"not on the page: {statement}"
        binaries = embedded_binaries() or system_binaries()
        assert binaries
        done = subprocess.run(
            [binaries / "psql", "-XqAt", "-F\t", "-v", "ON_ERROR_STOP=1", "-d", self.dsn],
            input=f"set rdq.actor = '{self.actor}';\n{statement};\n",
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def _run(self, words: list[str], exits: int) -> list[Row]:
        return [json.loads(line) for line in self._start(words, exits).splitlines()]

    def _start(self, words: list[str], exits: int) -> str:
        assert night.shows_command(words), f"not on the page: {words}"
        done = subprocess.run(
            [sys.executable, "-m", "rdq_runner", *words],
            cwd=ROOT,
            env={**os.environ, "RDQ_DSN": self.dsn, "RDQ_ACTOR": self.actor},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == exits, f"{words} ended with {done.returncode}: {done.stderr}"
        return done.stdout


class Producer:
    """An application that goes on submitting payments while others are mended."""

    EVERY_SECONDS: Final = 0.25

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stopping = threading.Event()
        self.submitted: list[UUID] = []

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Submit payments until the block ends."""
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()

    def _work(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as session:
            while not self._stopping.wait(self.EVERY_SECONDS):
                self.submitted += submit(session, "charge", '{"order": %s, "amount": 10}', 1)


def submit(session: psycopg.Connection[Any], handler: str, payload: str, count: int) -> list[UUID]:
    """Submit tasks to the queue payments; %s in the payload is the number of the order."""
    rows = session.execute(
        """
        select rdq.submit_many('payments', jsonb_agg(jsonb_build_object(
          'handler', %s::text, 'payload', format(%s, number), 'content_type', 'application/json'
        )))
        from generate_series(1, %s) number
        group by number / 1000
        """,
        [handler, payload, count],
    ).fetchall()
    return [task_id for (task_id,) in rows]


class Stopwatch:
    """How long each part of the story took, for who runs it by hand."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def lap(self, what: str) -> float:
        """Say and return the seconds since the last time."""
        now = time.monotonic()
        seconds, self._at = now - self._at, now
        print(f"{seconds:7.1f} s  {what}", flush=True)
        return seconds
