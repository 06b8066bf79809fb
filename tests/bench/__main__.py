"""``python -m tests.bench``: measures rdq and others, pair by pair, on a private PostgreSQL."""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from tests.bench import document, figures, plot
from tests.bench.case import Case, Cases
from tests.bench.contender import Contender
from tests.bench.contenders.bare_sql import BareSql
from tests.bench.contenders.rdq import Rdq
from tests.bench.figures import Sample
from tests.bench.processes import WorkerFailed
from tests.bench.stage import Theatre, TooSlow, server
from tests.bench.workloads import (
    callbacks,
    drain_runner,
    drain_sql,
    memory,
    redrive,
    storm,
    submit,
    wakeup,
)

CONTENDERS: Sequence[Contender] = (BareSql(), Rdq())
WORKLOADS: Mapping[str, Cases] = {
    "drain-sql": drain_sql.cases,
    "drain-runner": drain_runner.cases,
    "submit": submit.cases,
    "storm": storm.cases,
    "callbacks": callbacks.cases,
    "wakeup": wakeup.cases,
    "redrive": redrive.cases,
    "memory": memory.cases,
}
LONG = ("memory",)
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
        print(document.table(samples))
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
        action="append",
        choices=WORKLOADS,
        metavar="WORKLOAD",
        help=f"repeatable; of: {', '.join(WORKLOADS)} (default: all but {', '.join(LONG)})",
    )
    parser.add_argument("--variant", default="", help="only variants that contain this")
    parser.add_argument("--contender", action="append", help="repeatable (default: all)")
    parser.add_argument("--tasks", type=int, help="another number of tasks than the workload's own")
    parser.add_argument("--results", type=Path, default=Path("build/bench/results.jsonl"))
    parser.add_argument("--append", action="store_true", help="keep what is in the results")
    parser.add_argument("--document", type=Path, help="write the page, from all results")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    return parser.parse_args()


def _samples(options: argparse.Namespace) -> Iterator[Sample | None]:
    """Run all; yield what each run measured, which is kept already, or None if it failed."""
    names = options.only or [name for name in WORKLOADS if name not in LONG]
    cases = [case for name in names for case in WORKLOADS[name](options.tasks)]
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        theatre = Theatre(postgres, Path(folder))
        contenders = list(_prepared(theatre, options.contender))
        figures.write(options.results, theatre.conditions(), [])
        for case in cases:
            if options.variant not in case.variant:
                continue
            for pair in range(options.repeats):
                # Each goes first in every other round.
                for contender in contenders if pair % 2 == 0 else contenders[::-1]:
                    if isinstance(contender, case.requires):
                        sample = _sample(theatre, case, contender, pair)
                        figures.write(options.results, None, [sample] if sample else [])
                        yield sample


def _prepared(theatre: Theatre, names: Sequence[str] | None) -> Iterator[Contender]:
    for contender in CONTENDERS:
        if names and contender.name not in names:
            continue
        if reason := contender.missing():
            print(f"{contender.name} is skipped: {reason}", file=sys.stderr)
        else:
            contender.prepare(theatre.prepare(contender.name))
            yield contender


def _sample(theatre: Theatre, case: Case, contender: Contender, pair: int) -> Sample | None:
    load = os.getloadavg()[0]
    run = f"{case.workload}, {case.variant}: {contender.name} {pair + 1}"
    try:
        with theatre.stage(contender.name) as stage:
            measured = case.run(contender, stage)
    except (psycopg.Error, TooSlow, WorkerFailed) as error:
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
