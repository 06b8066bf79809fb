"""The ratios as a picture; needs matplotlib, which the extra ``bench`` brings."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.bench.figures import Sample, Spread, by_case, ratios
from tests.bench.tables import FLOOR, OURS, OWN_FLOOR

LATENT: Final = ("wake-up",)
"""There the pace is the benchmark's own."""
COLORS: Final = {OURS: "#4878a8", OWN_FLOOR: "#a8c4dc"}


def write(path: Path, samples: Sequence[Sample]) -> None:
    """Draw the rate of each contender in each case, as a multiple of the floor's in its round."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "rdq"
    from matplotlib import pyplot

    bars: list[tuple[str, Spread]] = []
    for workload, variant, contenders in by_case(s for s in samples if s.workload not in LATENT):
        floor = contenders.get(FLOOR, [])
        for name, measured in contenders.items():
            if name != FLOOR and (compared := ratios(measured, floor)):
                bars.append((f"{workload}, {variant}: {name}", Spread.of(compared)))
    figure, axes = pyplot.subplots(figsize=(9, 0.8 + 0.35 * len(bars)), layout="constrained")
    spreads = [spread for _, spread in bars]
    medians = [spread.median for spread in spreads]
    errors = [
        [spread.median - spread.least for spread in spreads],
        [spread.most - spread.median for spread in spreads],
    ]
    colors = [COLORS.get(name.rpartition(": ")[2], "#b8b8b8") for name, _ in bars]
    axes.barh([name for name, _ in bars], medians, xerr=errors, color=colors, capsize=3)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel(f"tasks a second, as a multiple of {FLOOR}; median, least and greatest")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
