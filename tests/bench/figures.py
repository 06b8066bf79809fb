"""What one run of a workload measured, as a line of JSON, and what many of them say together."""

import json
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One run: `tasks` in `seconds`, and what they cost.

    :param server_cpu: seconds of all processes of the server.
    :param client_cpu: seconds of the benchmark's process and of those that it started.
    :param wal: bytes; `full_pages` of them are images of pages, None where that cannot be told.
    :param statements: that the server executed, without those of the benchmark itself.
    :param calls: of `statements`, by the name of a function of SQL.
    :param extra: what else a workload measures, by name and unit.
    """

    tasks: int
    seconds: float
    server_cpu: float
    client_cpu: float
    wal: int
    full_pages: int | None = None
    statements: int | None = None
    calls: dict[str, int] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Tasks a second."""
        return self.tasks / self.seconds


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run of a contender; `pair` is the round in which it met the others.

    :param load: the machine's load average of one minute, just before.
    """

    workload: str
    variant: str
    contender: str
    version: str
    pair: int
    load: float
    figures: Figures


class Spread(NamedTuple):
    """The median of some measurements, and the least and the greatest of them."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Summarize; there must be at least one value."""
        known = list(values)
        return cls(statistics.median(known), min(known), max(known))


def write(path: Path, conditions: dict[str, str] | None, samples: Iterable[Sample]) -> None:
    """Append lines to a file: the conditions of a run if there are any, then its samples."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if conditions:
            file.write(json.dumps({"conditions": conditions}) + "\n")
        for sample in samples:
            file.write(json.dumps(asdict(sample)) + "\n")


def read(path: Path) -> tuple[list[dict[str, str]], list[Sample]]:
    """Read a file of `write`: the conditions of each run, and all samples."""
    conditions: list[dict[str, str]] = []
    samples: list[Sample] = []
    for line in path.read_text().splitlines():
        item = json.loads(line)
        if "conditions" in item:
            conditions.append(item["conditions"])
        else:
            samples.append(Sample(**{**item, "figures": Figures(**item["figures"])}))
    return conditions, samples


def by_case(samples: Iterable[Sample]) -> Iterator[tuple[str, str, dict[str, list[Sample]]]]:
    """Yield workload, variant and the samples by contender, in the order of the first of each."""
    cases: dict[tuple[str, str], dict[str, list[Sample]]] = {}
    for sample in samples:
        case = cases.setdefault((sample.workload, sample.variant), {})
        case.setdefault(sample.contender, []).append(sample)
    for (workload, variant), contenders in cases.items():
        yield workload, variant, contenders


def ratios(samples: list[Sample], others: list[Sample], extra: str = "") -> list[float]:
    """Return the rate over the other's, of each pair that both were in.

    :param extra: of what else was measured under this name, instead of the rate.
    """

    def value(sample: Sample) -> float:
        return sample.figures.extra[extra] if extra else sample.figures.rate

    theirs = {sample.pair: value(sample) for sample in others}
    return [value(s) / theirs[s.pair] for s in samples if theirs.get(s.pair)]
