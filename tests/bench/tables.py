"""Figures as tables: all of them, rdq against each other contender, and growth."""

from collections.abc import Iterable, Sequence
from typing import Final

from tests.bench.figures import Figures, Sample, Spread, by_case, ratios

FLOOR: Final = "bare SQL"
OWN_FLOOR: Final = "same writes"
OURS: Final = "rdq"
GROWTH: Final = "growth"
LATENCIES: Final[Sequence[str]] = ("p50, ms", "p99, ms")
HEADER: Final = (
    "workload", "variant", "contender", "tasks/s", f"÷ {FLOOR}", "server µs", "client µs", "WAL",
    "full pages", "statements", "claims", "reports",
)  # fmt: skip


def figures(samples: Sequence[Sample], markdown: bool = False) -> str:
    """Return a row for each contender in each case, and a line for what else it measured."""
    lines = _aligned([HEADER, *_rows(samples)], 3, markdown)
    notes = list(_notes(s for s in samples if not _grows(s)))
    return "\n".join([*lines, "", *notes] if notes else lines)


def comparisons(samples: Sequence[Sample], markdown: bool = False) -> str:
    """Return the rate of rdq over that of each other contender, a row for each case.

    Of latencies it is the latency instead.
    """
    cases = [
        (workload, variant, contenders)
        for workload, variant, contenders in by_case(samples)
        if OURS in contenders and len(contenders) > 1 and not workload.startswith(GROWTH)
    ]
    others = list(dict.fromkeys(name for *_, found in cases for name in found if name != OURS))
    rows = [
        [
            workload,
            variant,
            figure or "tasks/s",
            *(_ratio(ratios(found[OURS], found.get(name, []), figure)) for name in others),
        ]
        for workload, variant, found in cases
        for figure in [name for name in LATENCIES if name in found[OURS][0].figures.extra] or [""]
    ]
    header = ("workload", "variant", "of", *others)
    return "\n".join(_aligned([header, *rows], 3, markdown)) if rows else ""


def growth(samples: Sequence[Sample], markdown: bool = False) -> str:
    """Return a row for each thing that a workload of growth measured."""
    rows = [
        [workload, variant, name, figure, _extra(measured, figure)]
        for workload, variant, contenders in by_case(s for s in samples if _grows(s))
        for name, measured in contenders.items()
        for figure in dict.fromkeys(name for sample in measured for name in sample.figures.extra)
    ]
    header = ("workload", "variant", "contender", "what", "value")
    return "\n".join(_aligned([header, *rows], 4, markdown)) if rows else ""


def _grows(sample: Sample) -> bool:
    return sample.workload.startswith(GROWTH) and bool(sample.figures.extra)


def _extra(measured: Sequence[Sample], figure: str) -> str:
    """Return what else was measured, with few digits; not every run need have measured it."""
    extras = [sample.figures.extra for sample in measured]
    values = [extra[figure] for extra in extras if figure in extra]
    return _cell(values, ",.0f" if min(values) >= 100 else ".3g")


def _ratio(values: Sequence[float]) -> str:
    return _cell(values, ".2f") if values else ""


def _rows(samples: Sequence[Sample]) -> Iterable[Sequence[str]]:
    for workload, variant, contenders in by_case(s for s in samples if not _grows(s)):
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


def _notes(samples: Iterable[Sample]) -> Iterable[str]:
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


def _aligned(rows: Sequence[Sequence[str]], left: int, markdown: bool) -> list[str]:
    """Return lines of equally wide columns, of which the first ones are words."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [_line(row, widths, left, "| " if markdown else "") for row in rows]
    if markdown:
        rule = [
            ("-" * width if n < left else "-" * (width - 1) + ":") for n, width in enumerate(widths)
        ]
        lines.insert(1, _line(rule, widths, left, "| "))
    return lines


def _line(cells: Sequence[str], widths: Sequence[int], left: int, border: str) -> str:
    padded = [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    if border:
        return f"| {' | '.join(padded)} |"
    return "  ".join(padded).rstrip()
