"""rdq, as an application and its operators use it."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rdq_runner.migrate import migrate
from tests.bench.contender import Connection, Work
from tests.bench.processes import running
from tests.bench.stage import Stage

QUEUE = "bench"
SETTINGS = {"ladder": ["0 seconds"], "jitter": 0, "ambiguous_attempts": 8}


class Rdq:
    """The SQL API and ``rdq-runner run``, with every default but one: retries come at once."""

    name = "rdq"
    ready = """
        /* bench */ select exists (select from rdq.runners where alive) and exists (
          select from pg_stat_activity
          where datname = current_database() and query like '%listen rdq_due%' and state = 'idle'
        )
        """
    drained = """
        /* bench */ select not exists (select from rdq.due) and not exists (select from rdq.lease)
        """

    def version(self) -> str:
        return version("rdq-runner")

    def missing(self) -> str | None:
        return None

    def prepare(self, dsn: str) -> None:
        migrate(dsn)
        with Connection.connect(dsn) as connection:
            connection.execute("select rdq.create_queue(%s, %s)", [QUEUE, Jsonb(SETTINGS)])

    def announce(self, connection: Connection, on: bool) -> None:
        connection.execute("select rdq.alter_queue(%s, %s)", [QUEUE, Jsonb({"notify": on})])

    def submit(self, connection: Connection, work: Work, payload: str) -> None:
        connection.execute("select rdq.submit(%s, %s, %s::text)", [QUEUE, _handler(work), payload])

    def submit_many(self, connection: Connection, work: Work, payloads: Sequence[str]) -> None:
        tasks = json.dumps([{"handler": _handler(work), "payload": p} for p in payloads])
        connection.execute("select count(*) from rdq.submit_many(%s, %s::text)", [QUEUE, tasks])

    def drain(self, connection: Connection, batch: int) -> int:
        held: list[tuple[UUID, UUID, Any]] = connection.execute(
            "select task_id, claim_token, payload from rdq.claim(array[%s], 'bench', %s)",
            [QUEUE, batch],
            binary=True,
        ).fetchall()
        if batch == 1:
            for task_id, token, _ in held:
                connection.execute("select rdq.complete(%s, %s)", [task_id, token])
        elif held:
            connection.execute(
                "select count(*) from rdq.report(%s, %s, %s::jsonb[])",
                [[h[0] for h in held], [h[1] for h in held], [None] * len(held)],
            )
        return len(held)

    @contextmanager
    def worker(
        self, stage: Stage, work: Work, concurrency: int, **options: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "rdq_runner", "run", "--dsn", stage.dsn, "--queue", QUEUE]
        command += ["--handlers", "tests.bench.handlers", "--concurrency", str(concurrency)]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", value]
        with running(command, stage.folder / "rdq-runner.log") as process:
            yield process

    def set_endpoint(self, connection: Connection, url: str) -> None:
        connection.execute("select rdq.set_endpoint(%s, 'callback', %s)", [QUEUE, url])

    def bury(self, connection: Connection, count: int) -> None:
        error = {"type": "builtins.ValueError", "message": "no such order", "class": "PERMANENT"}
        connection.execute(
            """
            select count(*) from rdq.submit_many(%s, (
              select jsonb_agg(jsonb_build_object('handler', 'no-op', 'payload', repeat('x', 200),
                'error', %s::jsonb))
              from generate_series(1, %s)
            ))
            """,
            [QUEUE, Jsonb(error), count],
        )

    def redrive_all(self, connection: Connection) -> int:
        [(redrive_id,)] = connection.execute(
            "select redrive_id from rdq.redrive_where(%s)", [QUEUE]
        ).fetchall()
        while True:
            [(state, sent)] = connection.execute(
                "select state, sent from rdq.redrive_status(%s)", [redrive_id]
            ).fetchall()
            if state == "DONE":
                return int(sent)
            connection.execute("select rdq.tick()")


def _handler(work: Work) -> str:
    return work.replace(" ", "-")
