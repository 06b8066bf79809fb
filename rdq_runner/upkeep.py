"""What the ticks of this runner did, and which parts of them failed."""

import logging
from typing import Final

from rdq_runner.logs import Rarely, say
from rdq_runner.metrics import Metrics
from rdq_runner.rows import Tick

MOST_CHARACTERS: Final = 500


class Upkeep:
    """Counts, and says what fails: once, and again when it is something else or fails anew."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rarely = Rarely()
        self._failing: frozenset[str] = frozenset()

    def ticked(self, tick: Tick) -> None:
        """Note what a tick did."""
        self._metrics.ticked(tick)
        problems = frozenset(tick.problems or ())
        for problem in sorted(problems - self._failing):
            part, _, reason = problem.partition(": ")
            # Reasons may name another row each time.
            if self._rarely.allows(part):
                say(logging.WARNING, "upkeep fails", part=part, reason=reason[:MOST_CHARACTERS])
        if self._failing and not problems:
            say(logging.INFO, "upkeep works again")
        self._failing = problems
