"""A hundred thousand dead letters go back to work."""

from collections.abc import Sequence

from tests.bench.case import Case, Options
from tests.bench.contender import Redrives
from tests.bench.figures import Figures
from tests.bench.stage import Stage

TASKS = 100_000
BURY_BATCH = 10_000


def cases(options: Options) -> Sequence[Case]:
    """All that are dead, in the batches that the contender chooses."""
    count = options.tasks or TASKS

    def run(contender: Redrives, stage: Stage) -> Figures:
        with stage.session() as connection:
            contender.bury(connection, count)
            stage.meter.begin(stage.name)
            moved = contender.redrive_all(connection)
            assert moved == count, f"{moved} of {count} were redriven"
            return stage.meter.end(count)

    return [Case("redrive, bulk", f"{count:,} dead letters", (Redrives,), run)]
