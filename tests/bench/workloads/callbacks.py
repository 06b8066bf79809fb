"""HTTP callbacks to a server on the loopback that takes 50 ms for each answer."""

from collections.abc import Sequence

from tests.bench.case import Case, Options, run_worker
from tests.bench.contender import Calls
from tests.bench.figures import Figures
from tests.bench.payloads import payloads
from tests.bench.processes import saying_where
from tests.bench.stage import Stage

ANSWER_SECONDS = 0.05
TASKS = {1: 60, 50: 2_000}


def cases(options: Options) -> Sequence[Case]:
    """One at a time, and fifty at once."""

    def case(concurrency: int, count: int) -> Case:
        texts = payloads(count)

        def run(contender: Calls, stage: Stage) -> Figures:
            with saying_where("tests.bench.receiver", str(ANSWER_SECONDS)) as url:
                with stage.session() as connection:
                    contender.set_endpoint(connection, url)
                return run_worker(
                    contender,
                    stage,
                    "callback",
                    concurrency,
                    texts,
                    allow_destination="127.0.0.0/8",
                )

        ideal = concurrency / ANSWER_SECONDS
        return Case("callbacks", f"{concurrency} at once (ideal: {ideal:g}/s)", (Calls,), run)

    return [case(concurrency, options.tasks or count) for concurrency, count in TASKS.items()]
