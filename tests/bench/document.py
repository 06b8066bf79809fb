"""The figures as a table, and as the page ``docs/benchmarks.md``."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.bench.figures import Figures, Sample, Spread, by_case, ratios

FLOOR: Final = "bare SQL"
HEADER: Final = (
    "workload", "variant", "contender", "tasks/s", f"÷ {FLOOR}", "server µs", "client µs", "WAL",
    "full pages", "statements", "claims", "reports",
)  # fmt: skip
LEFT: Final = 3
"""So many columns are words."""

INTRODUCTION: Final = """\
# Benchmarks

This page is written by `make bench`. Figures of two runs, or of two machines, cannot be compared:
only the ratios of one run count.
"""
EXPLANATION: Final = f"""\
## How to read it

Each cell is the median, and the least and the greatest of {{repeats}} runs. In each round every
contender runs once, on a fresh copy of its database, and each goes first in every other round;
`÷ {FLOOR}` compares the two runs of a round.

- **tasks/s**: from the moment at which all tasks are committed and the worker waits for them, to
  the moment at which nothing waits and nothing is held any more; looked at 50 times a second.
- **server µs, client µs**: processor time a task, of all processes of PostgreSQL (autovacuum and
  checkpointer too), and of the benchmark with the worker that it started.
- **WAL**: bytes of write-ahead log a task, all that the server wrote meanwhile. A checkpoint comes
  right before each run, so a page that was there is logged whole when it is first changed: **full
  pages** are the part of the bytes which that takes. Pages that are new since then are not logged
  whole, as between two checkpoints of a server at work.
- **statements, claims, reports**: a task, as `pg_stat_statements` counts them.

The floor, *{FLOOR}*, is the least that delivers at least once: a claim moves rows from one table
to another, a completion deletes them there (`tests/bench/contenders/bare_sql.py`). It keeps no
history, has no leases, no queues, no policies. rdq keeps every attempt, with the stack of each
failure.
"""
REPRODUCE: Final = """\
## Do it again

```
make bench                                                 # all but the long ones: half an hour
make bench ARGS="--only drain-sql --variant 'batch 100'"   # one case
make bench ARGS="--only memory --repeats 1 --append"       # a long one, kept beside the others
make bench ARGS="--render --document docs/benchmarks.md"   # this page, from the results
```

It starts a PostgreSQL of its own (`PG=18` for another version) and leaves nothing behind but
`build/bench/results.jsonl`, one line of JSON a run.
"""


def table(samples: Sequence[Sample], markdown: bool = False) -> str:
    """Return a row for each contender in each case."""
    rows = [list(HEADER), *_rows(samples)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [_line(row, widths, "| " if markdown else "") for row in rows]
    if markdown:
        rule = [
            ("-" * width if n < LEFT else "-" * (width - 1) + ":") for n, width in enumerate(widths)
        ]
        lines.insert(1, _line(rule, widths, "| "))
    notes = list(_notes(samples))
    return "\n".join([*lines, "", *notes] if notes else lines)


def write(path: Path, conditions: Sequence[dict[str, str]], samples: Sequence[Sample]) -> None:
    """Write the page."""
    repeats = Spread.of(
        [len({s.pair for s in samples if s.workload == w}) for w in _workloads(samples)]
    )
    load = Spread.of([sample.load for sample in samples])
    facts = "\n".join(f"- {name}: {value}" for name, value in conditions[0].items())
    versions = sorted({f"{sample.contender}: {sample.version}" for sample in samples})
    sections = [
        INTRODUCTION,
        f"![Tasks a second, as a multiple of {FLOOR}]({path.with_suffix('.svg').name})\n",
        "## Figures\n",
        table(samples, markdown=True) + "\n",
        EXPLANATION.format(
            repeats=f"{repeats.most:g}"
            if repeats.least == repeats.most
            else f"{repeats.least:g} to {repeats.most:g}"
        ),
        "## Conditions\n",
        facts,
        f"- load average of one minute, before each run: {load.median:.1f} ({load.least:.1f} to"
        f" {load.most:.1f}); what else runs slows both sides of a pair",
        *(f"- {version}" for version in versions),
        "",
        REPRODUCE,
    ]
    path.write_text("\n".join(sections))


def _workloads(samples: Iterable[Sample]) -> set[str]:
    return {sample.workload for sample in samples}


def _rows(samples: Sequence[Sample]) -> Iterable[list[str]]:
    for workload, variant, contenders in by_case(samples):
        for name, measured in contenders.items():
            compared = ratios(measured, contenders.get(FLOOR, []))
            yield [
                workload,
                variant,
                name,
                _cell([s.figures.rate for s in measured], ",.0f"),
                _cell(compared, ".2f") if compared and name != FLOOR else "",
                _cell([_micros(s.figures.server_cpu, s.figures) for s in measured], ",.0f"),
                _cell([_micros(s.figures.client_cpu, s.figures) for s in measured], ",.0f"),
                _cell([s.figures.wal / s.figures.tasks for s in measured], ",.0f"),
                *(
                    _optional([_a_task(s.figures, what) for s in measured])
                    for what in ("full_pages", "statements", "claim", "report")
                ),
            ]


def _a_task(figures: Figures, what: str) -> float | None:
    if what in ("claim", "report"):
        counted = figures.calls.get(what)
    else:
        counted = figures.full_pages if what == "full_pages" else figures.statements
    return None if counted is None else counted / figures.tasks


def _micros(seconds: float, figures: Figures) -> float:
    return seconds / figures.tasks * 1e6


def _optional(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    median = Spread.of(known).median
    return f"{median:,.0f}" if median >= 10 else f"{median:.3g}"


def _cell(values: Sequence[float], form: str) -> str:
    spread = Spread.of(values)
    if len(values) == 1:
        return f"{spread.median:{form}}"
    return f"{spread.median:{form}} ({spread.least:{form}} to {spread.most:{form}})"


def _notes(samples: Sequence[Sample]) -> Iterable[str]:
    """Yield a line for each contender in each case that measured something else."""
    for workload, variant, contenders in by_case(samples):
        for name, measured in contenders.items():
            names = measured[0].figures.extra
            parts = [
                f"{extra}: {_cell([s.figures.extra[extra] for s in measured], ',.2f')}"
                for extra in names
            ]
            if parts:
                yield f"- {workload}, {variant}, {name}: {'; '.join(parts)}"


def _line(cells: Sequence[str], widths: Sequence[int], border: str) -> str:
    padded = [
        cell.ljust(width) if column < LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    if border:
        return f"| {' | '.join(padded)} |"
    return "  ".join(padded).rstrip()
