"""The page ``docs/benchmarks.md``."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.bench import tables
from tests.bench.contenders.pgmq import Pgmq
from tests.bench.figures import Sample, Spread
from tests.bench.peers import PEERS
from tests.bench.tables import FLOOR, OWN_FLOOR

INTRODUCTION: Final = """\
# Benchmarks

This page is written by `make bench`. Figures of two runs, or of two machines, cannot be compared:
only the ratios of one run count. Where the time goes is in [performance.md](performance.md).
"""
COMPARED: Final = "Its tasks a second over theirs in the same round, and its latency over theirs.\n"
EXPLANATION: Final = f"""\
## How to read it

Each cell is the median, and the least and the greatest of {{repeats}} runs. In each round every
contender runs once, on a fresh copy of its database, and each goes first in every other round;
`÷ {FLOOR}` compares the two runs of a round.

- **tasks/s**: from the moment at which all tasks are committed and the worker waits for them, to
  the moment at which nothing waits and nothing is held any more; looked at 50 times a second. The
  workers of other projects find the tasks when they start; their time counts from the moment at
  which the first handler begins.
- **server µs, client µs**: processor time a task, of all processes of PostgreSQL (autovacuum and
  checkpointer too), and of the benchmark with the processes that it started.
- **WAL**: bytes of write-ahead log a task, all that the server wrote meanwhile. A checkpoint comes
  right before each run, so a page that was there is logged whole when it is first changed: **full
  pages** are the part of the bytes which that takes. Pages that are new since then are not logged
  whole, as between two checkpoints of a server at work.
- **statements, claims, reports**: a task, as `pg_stat_statements` counts them.

After each drain and each storm the benchmark asks how often handlers ran: the contender's tables,
or the process in which they ran. A run in which that is not what was submitted fails.

The floor, *{FLOOR}*, is the least that delivers at least once: a claim moves rows from one table
to another, a completion deletes them there (`tests/bench/contenders/bare_sql.py`). It keeps no
history, has no leases, no queues, no policies. The second floor, *{OWN_FLOOR}*, writes the rows
that rdq writes, into the same tables, by bare statements that check and decide nothing
(`same_writes.py` there). So rdq ÷ {FLOOR} tells what everything costs, and rdq ÷ {OWN_FLOOR} what
the functions cost.
"""
CONTENDERS: Final = """\
## Who takes part

Each of the others runs as its users run it: its own library, pool and worker, in processes of its
own, in the best configuration that its documentation has, and nobody writes a line of log for each
task. Its module in `tests/bench/contenders/` says which that is. pgmq is SQL and has no worker: it
takes part where tasks are submitted and drained through SQL, and its functions are called as rdq's
are.

| contender | version | module | what it keeps |
| --- | --- | --- | --- |
{rows}

Retries come at once. Where a library has a delay that cannot be set, a function or a trigger in its
schema is put in its place, and its module says so. Where one does few tasks a second it gets fewer
than the others: procrastinate a twentieth, oban a tenth, chancy and awa a fifth, 500 at least.
"""
REPRODUCE: Final = """\
## Do it again

```
make bench                                                 # all but the long ones: half an hour
make bench ARGS="--contender rdq --contender 'bare SQL'"   # without the others: half of that
make bench ARGS="--only drain-sql --variant 'batch 100'"   # one case
make bench ARGS="--only growth --repeats 1 --append"       # growth, kept beside the others
make bench ARGS="--only growth-tables --repeats 1 --rows 10000000"  # with ten million rows
make bench ARGS="--only growth-snapshot --seconds 300 --contender rdq --contender graphile-worker"
make bench ARGS="--only growth-soak --seconds 1800"
make bench ARGS="--only memory --repeats 1 --append"
make bench ARGS="--render --document docs/benchmarks.md"   # this page, from the results
```

It starts a PostgreSQL of its own (`PG=18` for another version). The others' packages are installed
from the package index and from npm's registry, each into a folder of its own below
`build/bench/peers` (or `RDQ_BENCH_PEERS`), Node from a wheel too; whatever does not install is
skipped, with a line that says why. oban needs a Python 3.12 or newer on the PATH. All that is left
behind are these folders and `build/bench/results.jsonl`, one line of JSON a run.
"""


def write(path: Path, conditions: Sequence[dict[str, str]], samples: Sequence[Sample]) -> None:
    """Write the page."""
    load = Spread.of([sample.load for sample in samples])
    facts = "\n".join(f"- {name}: {value}" for name, value in conditions[0].items())
    compared = tables.comparisons(samples, markdown=True)
    growth = tables.growth(samples, markdown=True)
    sections = [
        INTRODUCTION,
        f"![Tasks a second, as a multiple of {FLOOR}]({path.with_suffix('.svg').name})\n",
        "## Figures\n",
        tables.figures(samples, markdown=True) + "\n",
        *(["## rdq ÷ the others\n", COMPARED, compared + "\n"] if compared else []),
        *(["## As the work grows\n", growth + "\n"] if growth else []),
        EXPLANATION.format(repeats=_repeats(samples)),
        CONTENDERS.format(rows="\n".join(_contenders(samples))),
        "## Conditions\n",
        facts,
        f"- load average of one minute, before each run: {load.median:.1f} ({load.least:.1f} to"
        f" {load.most:.1f}); what else runs slows both sides of a pair",
        "",
        REPRODUCE,
    ]
    path.write_text("\n".join(sections))


def _repeats(samples: Sequence[Sample]) -> str:
    workloads = {sample.workload for sample in samples}
    repeats = Spread.of([len({s.pair for s in samples if s.workload == w}) for w in workloads])
    if repeats.least == repeats.most:
        return f"{repeats.most:g}"
    return f"{repeats.least:g} to {repeats.most:g}"


def _contenders(samples: Sequence[Sample]) -> Iterable[str]:
    """Yield a row for each contender that was measured."""
    versions = {sample.contender: sample.version for sample in samples}
    known = {peer.name: (peer.source, peer.keeps) for peer in PEERS}
    known[FLOOR] = ("bare_sql.py", "the stacks of failures")
    known[OWN_FLOOR] = ("same_writes.py", "what rdq keeps of a task that succeeds")
    known[tables.OURS] = ("rdq.py", "every attempt, with the message and the stack of each failure")
    known[Pgmq.name] = ("pgmq.py", "how often a message was read; one that is done is deleted")
    for name, version in versions.items():
        source, keeps = known[name]
        yield f"| {name} | {version} | `{source}` | {keeps} |"
