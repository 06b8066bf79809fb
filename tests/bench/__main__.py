"""``python -m tests.bench``: measures rdq and others, pair by pair, on a private PostgreSQL."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from tests.bench import document, figures, plot, tables
from tests.bench.case import Case, Cases, Miscounted, Options
from tests.bench.contender import Contender
from tests.bench.contenders.bare_sql import BareSql
from tests.bench.contenders.pgmq import Pgmq
from tests.bench.contenders.rdq import Rdq
from tests.bench.contenders.same_writes import SameWrites
from tests.bench.figures import Sample
from tests.bench.peers import PEERS
from tests.bench.processes import WorkerFailed
from tests.bench.stage import Theatre, TooSlow, server
from tests.bench.workloads import (
    callbacks,
    drain_runner,
    drain_sql,
    growth_claims,
    growth_scrape,
    growth_snapshot,
    growth_soak,
    memory,
    redrive,
    storm,
    submit,
    wakeup,
)

CONTENDERS: Sequence[Contender] = (BareSql(), SameWrites(), Rdq(), Pgmq(), *PEERS)
WORKLOADS: Mapping[str, Cases] = {
    "drain-sql": drain_sql.cases,
    "drain-runner": drain_runner.cases,
    "submit": submit.cases,
    "storm": storm.cases,
    "callbacks": callbacks.cases,
    "wakeup": wakeup.cases,
    "redrive": redrive.cases,
    "memory": memory.cases,
    "growth-tables": growth_claims.tables,
    "growth-queues": growth_claims.queues,
    "growth-history": growth_claims.history,
    "growth-claimers": growth_claims.claimers,
    "growth-snapshot": growth_snapshot.cases,
    "growth-soak": growth_soak.cases,
    "growth-scrape": growth_scrape.cases,
}
LONG = tuple(name for name in WORKLOADS if name == "memory" or name.startswith("growth"))
"""Only run when asked for."""


def main() -> int:
    """Run what was asked for, keep the figures and print them; return 1 if a run failed."""
    options = _options()
    failed = False
    if not options.render:
        if not options.append:
            options.results.unlink(missing_ok=True)
        samples: list[Sample] = []
        for sample in _samples(options):
            failed = failed or sample is None
            samples += [sample] if sample else []
        shown = (tables.figures(samples), tables.comparisons(samples), tables.growth(samples))
        print(*filter(None, shown), sep="\n\n")
        print(f"\n{options.results}")
    if options.document:
        conditions, samples = figures.read(options.results)
        document.write(options.document, conditions, samples)
        plot.write(options.document.with_suffix(".svg"), samples)
        print(options.document)
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="pairs of each case (default: 5)")
    parser.add_argument(
        "--only",
        action="extend",
        type=_workloads,
        metavar="WORKLOAD",
        help=f"repeatable, or the beginning of some, as growth; of: {', '.join(WORKLOADS)}"
        f" (default: all but {', '.join(LONG)})",
    )
    parser.add_argument("--variant", default="", help="only variants that contain this")
    parser.add_argument(
        "--contender",
        action="append",
        default=[],
        metavar="NAME",
        help=f"repeatable; of: {', '.join(c.name for c in CONTENDERS)} (default: all)",
    )
    parser.add_argument("--tasks", type=int, help="another number of tasks than the workload's own")
    parser.add_argument("--seconds", type=float, help="of growth-snapshot and growth-soak")
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="the most in growth-tables and growth-scrape"
    )
    parser.add_argument("--results", type=Path, default=Path("build/bench/results.jsonl"))
    parser.add_argument("--append", action="store_true", help="keep what is in the results")
    parser.add_argument("--document", type=Path, help="write the page, from all results")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    return parser.parse_args()


def _workloads(beginning: str) -> list[str]:
    """Return the workload of that name, or those whose names begin so."""
    if beginning in WORKLOADS:
        return [beginning]
    names = [name for name in WORKLOADS if name.startswith(f"{beginning}-")]
    if not names:
        raise argparse.ArgumentTypeError(f"no workload is {beginning}: {', '.join(WORKLOADS)}")
    return names


def _samples(options: argparse.Namespace) -> Iterator[Sample | None]:
    """Run all; yield what each run measured, which is kept already, or None if it failed."""
    names = options.only or [name for name in WORKLOADS if name not in LONG]
    told = Options(tasks=options.tasks, seconds=options.seconds, rows=options.rows)
    cases = [
        case for name in names for case in WORKLOADS[name](told) if options.variant in case.variant
    ]
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        theatre = Theatre(postgres, Path(folder))
        contenders = list(_prepared(theatre, cases, options.contender))
        figures.write(options.results, theatre.conditions(), [])
        for case in cases:
            for pair in range(options.repeats):
                # Each goes first in every other round.
                for contender in contenders if pair % 2 == 0 else contenders[::-1]:
                    if case.takes(contender, options.contender):
                        sample = _sample(theatre, case, contender, pair)
                        figures.write(options.results, None, [sample] if sample else [])
                        yield sample


def _prepared(theatre: Theatre, cases: Sequence[Case], names: Sequence[str]) -> Iterator[Contender]:
    """Prepare the contenders that were asked for and take part in anything."""
    for contender in CONTENDERS:
        if not any(case.takes(contender, names) for case in cases):
            continue
        reason = contender.missing()
        if reason is None:
            try:
                contender.prepare(theatre.prepare(contender.name))
            except WorkerFailed as error:
                reason = "\n".join([str(error), *getattr(error, "__notes__", [])])
        if reason is None:
            print(f"{contender.name}: {contender.version()}", file=sys.stderr)
            yield contender
        else:
            print(f"{contender.name} is skipped: {reason}", file=sys.stderr)


def _sample(theatre: Theatre, case: Case, contender: Contender, pair: int) -> Sample | None:
    load = os.getloadavg()[0]
    run = f"{case.workload}, {case.variant}: {contender.name} {pair + 1}"
    try:
        with theatre.stage(contender.name) as stage:
            measured = case.run(contender, stage)
    except (psycopg.Error, TooSlow, WorkerFailed, Miscounted) as error:
        notes = getattr(error, "__notes__", [])
        print(f"{run}: FAILED: {error}", *notes, sep="\n", file=sys.stderr)
        return None
    print(f"{run}: {measured.rate:,.0f}/s (load {load:.1f})", file=sys.stderr)
    return Sample(
        workload=case.workload,
        variant=case.variant,
        contender=contender.name,
        version=contender.version(),
        pair=pair,
        load=round(load, 2),
        figures=measured,
    )


if __name__ == "__main__":
    sys.exit(main())
