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
from rdq_runner.sql import OPEN_REDRIVES, QUEUE_STATS
from tests.bench import copies
from tests.bench.contender import ATTEMPTS, Connection, Held, Pile, Work
from tests.bench.payloads import payloads
from tests.bench.processes import running
from tests.bench.stage import Stage

QUEUE = "bench"
SETTINGS = {"ladder": ["0 seconds"], "jitter": 0, "ambiguous_attempts": 8}
FEW = 1_000
"""So many of a pile come to be through the functions; they are multiplied then."""
STACK = "\n".join(f"  line {number} of a stack" for number in range(20))


class Rdq:
    """The SQL API and ``rdq-runner run``, with every default but one: retries come at once."""

    name = "rdq"
    drained = """
        /* bench */ select not exists (select from rdq.due) and not exists (select from rdq.lease)
        """
    claims = "rdq.claim("
    channel = "rdq_due"

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
        task: dict[str, object] = {"handler": _handler(work)}
        if work == "doom":
            task["max_attempts"] = ATTEMPTS
        tasks = json.dumps([{**task, "payload": payload} for payload in payloads])
        connection.execute("select count(*) from rdq.submit_many(%s, %s::text)", [QUEUE, tasks])

    def drain(self, connection: Connection, batch: int) -> int:
        return self.drain_queue(connection, QUEUE, batch)

    def drain_queue(self, connection: Connection, queue: str, batch: int) -> int:
        held: list[tuple[UUID, UUID, Any]] = connection.execute(
            "select task_id, claim_token, payload from rdq.claim(array[%s], 'bench', %s)",
            [queue, batch],
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

    def hold(self, connection: Connection, batch: int) -> list[Held]:
        rows = connection.execute(
            """
            select task_id, claim_token, handler, convert_from(payload, 'UTF8'), attempt_count
            from rdq.claim(array[%s], 'loop', %s)
            """,
            [QUEUE, batch],
            binary=True,
        )
        return [Held((task_id, token), *rest) for task_id, token, *rest in rows]

    def settle(
        self, connection: Connection, done: Sequence[Held], failed: Sequence[tuple[Held, str]]
    ) -> None:
        keys = [held.key for held in done] + [held.key for held, _ in failed]
        failures = [{"type": "Unavailable", "stack": stack} for _, stack in failed]
        connection.execute(
            "select count(*) from rdq.report(%s, %s, %s::jsonb[])",
            [
                [task_id for task_id, _ in keys],
                [token for _, token in keys],
                [*(None for _ in done), *map(Jsonb, failures)],
            ],
        )

    def ready(self, workers: int) -> str:
        return f"""
            /* bench */ select (select count(*) from rdq.runners where alive) >= {workers} and (
              select count(*)
              from pg_stat_activity
              where datname = current_database() and query like '%listen rdq_due%'
                and state = 'idle'
            ) >= {workers}
            """

    def executions(self, connection: Connection) -> int:
        [(count,)] = connection.execute(
            "select count(*) from rdq.attempt where outcome in ('SUCCEEDED', 'FAILED')"
        ).fetchall()
        return int(count)

    @contextmanager
    def worker(
        self, stage: Stage, work: Work, concurrency: int, **options: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", "rdq_runner", "run", "--dsn", stage.dsn, "--queue", QUEUE]
        command += ["--handlers", "tests.bench.handlers", "--concurrency", str(concurrency)]
        command += ["--log-level", "warning"]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", value]
        with running(command, stage.log("rdq-runner")) as process:
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

    def pile_up(self, connection: Connection, piles: Sequence[Pile], count: int) -> None:
        for pile in piles:
            if pile == "dead":
                self.bury(connection, FEW)
            elif pile == "scheduled":
                self._submit_later(connection, FEW)
            else:
                self.submit_many(connection, "no-op", payloads(FEW))
                while self.drain(connection, FEW):
                    pass
        copies.multiply(connection.info.dsn, count // FEW)

    def _submit_later(self, connection: Connection, count: int) -> None:
        connection.execute(
            """
            select count(*) from rdq.submit_many(%s, (
              select jsonb_agg(jsonb_build_object('handler', 'no-op', 'payload', repeat('x', 200),
                'run_at', now() + interval '30 days' + n * interval '1 second'))
              from generate_series(1, %s) n
            ))
            """,
            [QUEUE, count],
        )

    def create_queues(self, connection: Connection, count: int, tasks: int) -> Sequence[str]:
        names = [f"{QUEUE}-{number}" for number in range(count)]
        task = json.dumps([{"handler": "no-op", "payload": p} for p in payloads(tasks)])
        for name in names:
            connection.execute("select rdq.create_queue(%s)", [name])
            connection.execute("select count(*) from rdq.submit_many(%s, %s::text)", [name, task])
        return names

    def set_policy(self, connection: Connection, **settings: object) -> None:
        connection.execute("select rdq.alter_queue(%s, %s)", [QUEUE, Jsonb(settings)])

    def claim_query(self, batch: int, queues: Sequence[str] = ()) -> str:
        names = ", ".join(f"'{name}'" for name in queues or [QUEUE])
        return f"select * from rdq.claim(array[{names}], 'bench', {batch})"

    def report_query(self, failed: bool) -> str:
        failure = {"type": "builtins.ValueError", "message": "no such order", "stack": STACK}
        outcome = f"'{json.dumps(failure)}'::jsonb" if failed else "null::jsonb"
        return f"""
            select * from rdq.report(
              array(select task_id from rdq.lease order by task_id),
              array(select claim_token from rdq.lease order by task_id),
              array(select {outcome} from rdq.lease)
            )
            """

    def stats_queries(self) -> Sequence[str]:
        return [QUEUE_STATS, OPEN_REDRIVES]

    def recount_query(self) -> str:
        return "select rdq.refresh_queue_stats()"

    def forget_counts(self, connection: Connection) -> None:
        connection.execute("/* bench */ delete from rdq.queue_count")

    def tables(self) -> Sequence[str]:
        return ["rdq.task", "rdq.due", "rdq.lease", "rdq.attempt"]


def _handler(work: Work) -> str:
    return work.replace(" ", "-")
