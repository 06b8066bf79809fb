"""Measures what happens between two moments: time, processor, write-ahead log, statements."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg

from tests.bench.figures import Figures

OWN: Final = "/* bench */"
"""In each statement that the benchmark sends only to look; such statements are not counted."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_FUNCTION: Final = re.compile(r"\brdq\.(\w+)\s*\(")


class _Reading(NamedTuple):
    at: float
    server_cpu: float
    client_cpu: float
    wal: str


class Statements(NamedTuple):
    """What some statements have done.

    :param milliseconds: that their execution took in all.
    :param rows: that they returned.
    """

    calls: float
    milliseconds: float
    rows: float


class Meter:
    """Reads the meters of a server and of this process.

    Processor seconds are of whole trees of processes, so autovacuum, checkpoints and ended children
    count. The log is the whole server's: what happens in the background counts too.

    :param maintenance: a superuser's session, in no database of a contender.
    :param postmaster: the server's first process.
    """

    def __init__(self, maintenance: psycopg.Connection[Any], postmaster: int) -> None:
        self._maintenance = maintenance
        self._postmaster = postmaster
        self._counts = self._has("pg_stat_statements")
        self._inspects = self._has("pg_walinspect")
        self._began: _Reading
        self._database: str

    def checkpoint(self) -> None:
        """Write all pages out: each is logged whole when it is changed next, and only then."""
        self._maintenance.execute("checkpoint")

    def begin(self, database: str) -> None:
        """Measure from now on; statements, in this database."""
        self._database = database
        if self._counts:
            self._maintenance.execute("select pg_stat_statements_reset()")
        self._began = self._read()

    @property
    def began(self) -> float:
        """When `begin` was called, by `time.monotonic`."""
        return self._began.at

    def statements(self, like: str) -> Statements:
        """Return what the statements that contain this have done since `begin`.

        Where the server does not count statements, nothing.
        """
        if not self._counts:
            return Statements(0, 0, 0)
        [(calls, milliseconds, rows)] = self._maintenance.execute(
            "select coalesce(sum(calls), 0)::float, coalesce(sum(total_exec_time), 0),"
            " coalesce(sum(rows), 0)::float from pg_stat_statements s"
            " join pg_database d on d.oid = s.dbid"
            " where d.datname = %s and position(lower(%s) in lower(query)) > 0",
            [self._database, like],
        ).fetchall()
        return Statements(calls, milliseconds, rows)

    def end(self, tasks: int, **extra: float) -> Figures:
        """Return what there was since `begin`."""
        began, ended = self._began, self._read()
        calls = self._calls()
        return Figures(
            tasks=tasks,
            seconds=ended.at - began.at,
            server_cpu=ended.server_cpu - began.server_cpu,
            client_cpu=ended.client_cpu - began.client_cpu,
            wal=self._distance(began.wal, ended.wal),
            full_pages=self._full_pages(began.wal, ended.wal),
            statements=None if calls is None else calls.total(),
            calls={name: n for name, n in (calls or Counter()).items() if name},
            extra=extra,
        )

    @contextmanager
    def wal(self, into: dict[str, float], name: str) -> Iterator[None]:
        """Note under a name how many bytes of log the block writes."""
        before = self._position()
        yield
        into[name] = self._distance(before, self._position())

    def _read(self) -> _Reading:
        position = self._position()
        server, client = _processor_seconds(self._postmaster, os.getpid())
        return _Reading(time.monotonic(), server, client, position)

    def _position(self) -> str:
        return str(self._ask("select pg_current_wal_insert_lsn()"))

    def _distance(self, begin: str, end: str) -> int:
        return int(self._ask("select pg_wal_lsn_diff(%s, %s)", end, begin))

    def _full_pages(self, begin: str, end: str) -> int | None:
        if not self._inspects or begin == end:
            return None
        # What is not flushed yet cannot be inspected: the commit of a message flushes it.
        self._maintenance.execute("select pg_logical_emit_message(true, 'bench', '')")
        try:
            total = self._ask("select sum(fpi_size) from pg_get_wal_stats(%s, %s)", begin, end)
        except psycopg.errors.UndefinedFile:  # a checkpoint came between, and has removed it
            return None
        return int(total)

    def _calls(self) -> Counter[str] | None:
        """Count the statements, by the function of rdq that each calls; "" is none."""
        if not self._counts:
            return None
        counts: Counter[str] = Counter()
        for query, calls in self._maintenance.execute(
            "select query, calls from pg_stat_statements s join pg_database d on d.oid = s.dbid"
            " where d.datname = %s and position(%s in query) = 0",
            [self._database, OWN],
        ):
            found = _FUNCTION.search(query)
            counts[found[1] if found else ""] += calls
        return counts

    def _has(self, extension: str) -> bool:
        """Create an extension, if the server has it, and has loaded what it needs."""
        try:
            self._maintenance.execute(f"create extension if not exists {extension}".encode())
            if extension == "pg_stat_statements":
                self._maintenance.execute("select pg_stat_statements_reset()")
        except psycopg.Error:
            return False
        return True

    def _ask(self, query: str, *parameters: object) -> Any:
        [(answer,)] = self._maintenance.execute(query.encode(), parameters).fetchall()
        return answer


def resident_bytes(pid: int) -> int:
    """Return the memory that a process has now (VmRSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _processor_seconds(*roots: int) -> list[float]:
    """Return the seconds of each root's process with all that descend from it."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        # utime, stime, and those of children that have ended.
        seconds[pid] = sum(map(int, fields[11:15])) / _TICKS
    return [
        sum(spent for pid, spent in seconds.items() if _descends(pid, root, parents))
        for root in roots
    ]


def _descends(pid: int, root: int, parents: Mapping[int, int]) -> bool:
    while pid not in (root, 0):
        pid = parents.get(pid, 0)
    return pid == root
