"""A contender of another project: its library runs in a process of its own, as its users run it."""

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final

from psycopg.conninfo import conninfo_to_dict

from tests.bench.installations import Node, Python, missing
from tests.bench.processes import ROOT, WorkerFailed, running
from tests.bench.stage import Stage

ANSWER_SECONDS: Final = 600.0
LEAST_TASKS: Final = 500
_ENVIRONMENT: Final = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}


class PeerProcess:
    """A process that submits, or works, or both; see `tests.bench.peer_process`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._answers: queue.Queue[bytes] = queue.Queue()
        assert process.stdout
        # A thread of its own reads, so that to wait for an answer has a bound.
        threading.Thread(target=self._read, args=[process.stdout], daemon=True).start()
        self._answer()

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        """Have something done; return what it answers then.

        :raises WorkerFailed: it ended, or took too long.
        """
        self.tell(do, **arguments)
        return self._answer(ANSWER_SECONDS + float(str(arguments.get("seconds", 0))))

    def tell(self, do: str, **arguments: object) -> None:
        """Have something done, without waiting for its answer, which `hear` returns."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailed(f"it had ended when it was told to {do}") from None

    def hear(self) -> dict[str, Any]:
        """Return the next answer."""
        return self._answer()

    def _read(self, output: IO[bytes]) -> None:
        for line in output:
            self._answers.put(line)
        self._answers.put(b"")

    def _answer(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise WorkerFailed(f"no answer within {seconds:g} s") from None
        if not line:
            raise WorkerFailed("it ended, without an answer")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(frozen=True)
class Peer:
    """One of them.

    :param module: in `tests.bench.contenders`: what it runs, and in which configuration.
    :param installation: its packages, with their versions.
    :param drained: a question in SQL: is there no task any more that waits, is held, or waits for
        a retry?
    :param keeps: of a task that fails and of one that succeeds, in a few words.
    :param share: of the tasks that others get in a drain or a storm, of which it does few a second.
    :param claims: a part of the statement that claims, as `pg_stat_statements` shows it.
    """

    name: str
    module: str
    installation: Python | Node
    drained: str
    keeps: str
    share: float = 1
    claims: str = ""

    @property
    def source(self) -> str:
        """The name of its module's file."""
        return f"{self.module}.{'mjs' if isinstance(self.installation, Node) else 'py'}"

    def version(self) -> str:
        return self._versions

    @cached_property
    def _versions(self) -> str:
        return self.installation.versions()

    def missing(self) -> str | None:
        return missing(self.installation)

    def prepare(self, dsn: str) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            self._process(dsn, Path(folder, "install.log")) as process,
        ):
            process.ask("install")

    def count(self, tasks: int) -> int:
        """Return how many tasks it gets where others get so many."""
        return max(int(tasks * self.share), min(tasks, LEAST_TASKS))

    @contextmanager
    def process(self, stage: Stage, sessions: int) -> Iterator[PeerProcess]:
        """Run a process that is connected; it ends with the block.

        :param sessions: so many submits at once.
        """
        log = stage.log(self.module)
        with self._process(stage.dsn, log) as process:
            process.ask("connect", sessions=sessions)
            yield process

    @contextmanager
    def _process(self, dsn: str, log: Path) -> Iterator[PeerProcess]:
        command = self.installation.command()
        if isinstance(self.installation, Node):
            module = ROOT / "tests" / "bench" / "contenders" / self.source
            command += [str(module), str(self.installation.folder)]
        else:
            command += ["-m", f"tests.bench.contenders.{self.module}"]
        parameters = conninfo_to_dict(dsn)
        environment = {
            variable: str(parameters[name])
            for name, variable in _ENVIRONMENT.items()
            if name in parameters
        }
        with running(command, log, converses=True, environment=environment) as process:
            yield PeerProcess(process)
