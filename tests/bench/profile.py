"""``python -m tests.bench.profile``: where the time of the server goes, by perf, and by function.

One session works on a private server. perf samples it, with stacks that it unwinds by the tables
that every PostgreSQL has, so no debug symbols are needed. Of each stack the innermost function that
belongs to a family counts. Then the same again while the server counts what each function takes.
"""

import argparse
import os
import re
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.case import LOAD_BATCH
from tests.bench.contender import Connection
from tests.bench.contenders.bare_sql import BareSql
from tests.bench.contenders.rdq import Rdq
from tests.bench.contenders.same_writes import SameWrites
from tests.bench.payloads import batches, payloads
from tests.bench.stage import Theatre, server

Measured = BareSql | SameWrites | Rdq

CONTENDERS: Final[Mapping[str, Measured]] = {c.name: c for c in (Rdq(), SameWrites(), BareSql())}
WARM_UP: Final = 50
"""So many batches go before the first that counts: plans are made, catalogs are read."""
HERTZ: Final = 997
FUNCTIONS: Final = 12
FAMILIES: Final[Mapping[str, str]] = {
    "write-ahead log: flush": "XLogFlush|XLogBackgroundFlush|issue_xlog_fsync",
    "write-ahead log: records": "XLog.*|xlog.*|log_heap.*|MarkBufferDirtyHint",
    "index insertion": "btinsert|index_insert|ExecInsertIndexTuples|FormIndexDatum",
    "index and heap look-ups": "index_getnext.*|index_fetch_heap|index_beginscan|index_rescan"
    "|index_endscan|heap_getnext.*|index_getbitmap",
    "heap: insert, delete, lock": "heap_insert|heap_multi_insert|heap_delete|heap_update"
    "|heap_lock_tuple|heap_form_tuple|heap_toast.*|RelationGetBufferForTuple",
    "parse and plan": "raw_parser|parse_analyze.*|pg_analyze_and_rewrite.*|pg_plan_quer.*"
    "|standard_planner|SPI_prepare.*",
    "plan cache": "GetCachedPlan|ReleaseCachedPlan|CachedPlan.*|SPI_plan_get_cached_plan"
    "|ResourceOwner.*PlanCacheRef.*",
    "start and end of statements": "standard_ExecutorStart|standard_ExecutorEnd|ExecInit.*"
    "|ExecEnd.*|standard_ExecutorFinish|CreateExecutorState|FreeExecutorState|CreateQueryDesc"
    "|FreeQueryDesc|ExecAssign.*|ExecBuild.*|ExecPrepare.*|CreateExprContext|ShutdownExprContext",
    "snapshots and locks": "GetSnapshotData|GetTransactionSnapshot|PushActiveSnapshot.*"
    "|PopActiveSnapshot|PushCopiedSnapshot|UpdateActiveSnapshotCommandId|LockAcquire.*"
    "|LockRelation.*|LockRelease.*|UnlockRelation.*|CommandCounterIncrement|LockTuple.*",
    "SET clauses of functions": "fmgr_security_definer|ProcessGUCArray|set_config.*|AtEOXact_GUC"
    "|NewGUCNestLevel",
    "begin and commit": "StartTransactionCommand|CommitTransactionCommand|AtEOXact.*|AtCommit.*",
    "network and messages": "pq_.*|secure_.*|printtup.*|WaitEventSetWait.*|WaitLatch.*|socket_.*"
    "|SendRowDescription.*|EndCommand|pgstat_report_.*|PostgresMain",
    "executor and expressions": "standard_ExecutorRun|ExecProcNode.*|ExecScan|ExecInterpExpr.*"
    "|ExecMakeTableFunctionResult|ExecEval.*|ExecStoreTuple.*|tuplestore_.*|ExecModifyTable",
    "PL/pgSQL": "plpgsql_.*|SPI_.*",
}
"""Functions of PostgreSQL, as regular expressions; most static ones have no name in a stack."""
_FAMILY: Final = re.compile(
    "|".join(f"(?P<f{n}>{names})" for n, names in enumerate(FAMILIES.values()))
)


@dataclass(frozen=True)
class Job:
    """What is profiled.

    :param run: does it, so many tasks.
    :param prepare: has so many tasks ready for it.
    """

    run: Callable[[Measured, Connection, int], None]
    prepare: Callable[[Measured, Connection, int], None]
    tasks: int
    batch: int


def _submit(contender: Measured, connection: Connection, tasks: int) -> None:
    for payload in payloads(tasks):
        contender.submit(connection, "no-op", payload)


def _submit_many(contender: Measured, connection: Connection, tasks: int) -> None:
    for batch in batches(payloads(tasks), LOAD_BATCH):
        contender.submit_many(connection, "no-op", batch)


def _bury(contender: Measured, connection: Connection, tasks: int) -> None:
    contender.bury(connection, tasks)


def _redrive(contender: Measured, connection: Connection, tasks: int) -> None:
    contender.redrive_all(connection)


def _nothing(contender: Measured, connection: Connection, tasks: int) -> None:
    """Submits need nothing."""


def _drain(batch: int, tasks: int) -> Job:
    def run(contender: Measured, connection: Connection, tasks: int) -> None:
        while contender.drain(connection, batch):
            pass

    return Job(run, _submit_many, tasks, batch)


JOBS: Final[Mapping[str, Job]] = {
    "drain-1": _drain(1, 3_000),
    "drain-10": _drain(10, 20_000),
    "drain-100": _drain(100, 100_000),
    "submit": Job(_submit, _nothing, 5_000, 1),
    "submit-bulk": Job(_submit_many, _nothing, 100_000, LOAD_BATCH),
    "redrive": Job(_redrive, _bury, 100_000, 100),
}


def main() -> None:
    """Profile what was asked for, and print it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.profile", description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--contender", choices=CONTENDERS, default=Rdq.name)
    options = parser.parse_args()
    contender, job = CONTENDERS[options.contender], JOBS[options.job]
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        theatre = Theatre(postgres, Path(folder))
        contender.prepare(theatre.prepare(contender.name))
        with theatre.stage(contender.name) as stage, stage.session() as connection:
            _prepare(contender, connection, job)
            with _perf(connection.info.backend_pid, stage.folder / "perf.data") as data:
                job.run(contender, connection, job.tasks)
        _print_families(_stacks(data), job.tasks)
        with theatre.stage(contender.name) as stage, stage.session() as connection:
            _prepare(contender, connection, job)
            connection.execute("set track_functions = 'all'")
            job.run(contender, connection, job.tasks)
            connection.execute("select pg_stat_force_next_flush()")
            _print_functions(connection, job.tasks)


def _prepare(contender: Measured, connection: Connection, job: Job) -> None:
    """Warm up, and have what the job takes."""
    contender.announce(connection, False)
    for tasks in (WARM_UP * job.batch, job.tasks):
        job.prepare(contender, connection, tasks)
        connection.execute("vacuum analyze")
        if tasks != job.tasks:
            job.run(contender, connection, tasks)


@contextmanager
def _perf(pid: int, data: Path) -> Iterator[Path]:
    """Sample a process during the block, and not before perf says that it does."""
    ours, its = os.pipe(), os.pipe()
    command = ["perf", "record", "--quiet", "--event=cpu-clock", f"--freq={HERTZ}"]
    command += ["--call-graph=dwarf,65528", f"--pid={pid}", f"--output={data}", "--delay=-1"]
    command += [f"--control=fd:{ours[0]},{its[1]}"]
    with subprocess.Popen(command, pass_fds=(ours[0], its[1])) as perf:
        os.write(ours[1], b"enable\n")
        os.read(its[0], 16)  # "ack"
        yield data
        perf.send_signal(signal.SIGINT)
    for end in (*ours, *its):
        os.close(end)


def _stacks(data: Path) -> Iterator[list[str]]:
    """Yield the functions of each sample, the innermost first."""
    command = ["perf", "script", f"--input={data}", "--fields=ip,sym", "--no-inline"]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for sample in script.split("\n\n"):
        names = [line.split(maxsplit=1)[1] for line in sample.splitlines() if line.strip()]
        if names:
            yield names


def _family(stack: Iterable[str]) -> str:
    """Return the family of the innermost function that has one."""
    for name in stack:
        if found := _FAMILY.fullmatch(name.partition("@")[0]):
            return list(FAMILIES)[int(str(found.lastgroup)[1:])]
    return "rest"


def _print_families(stacks: Iterable[list[str]], tasks: int) -> None:
    counts = Counter(map(_family, stacks))
    total = counts.total()
    print(f"By family, of {total:,} samples, {total / HERTZ / tasks * 1e6:,.0f} µs a task:")
    for name, count in counts.most_common():
        print(f"{count / total:6.1%}  {name}")


def _print_functions(connection: Connection, tasks: int) -> None:
    """Print what the functions of PL/pgSQL, and those of SQL that are not inlined, take."""
    rows = connection.execute(
        "select funcname, calls, self_time from pg_stat_user_functions order by self_time desc"
    ).fetchall()
    total = sum(row[2] for row in rows)
    print("\nBy function of SQL, itself, while the server counts them:")
    for name, calls, milliseconds in rows[:FUNCTIONS]:
        share, micros = milliseconds / total, milliseconds * 1000 / tasks
        print(f"{share:6.1%}  {micros:8,.1f} µs, {calls / tasks:6.3f} calls a task  {name}")


if __name__ == "__main__":
    main()
