"""Who runs a task: what an executor is, and which one a queue and a handler's name lead to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rdq_runner.leases import Lease
from rdq_runner.outcomes import Outcome

Finish = Callable[[Lease, Outcome], bool]
"""Takes how an attempt ended, from any thread; the first word counts, False answers the rest."""


class Executor(Protocol):
    """Runs attempts, each to one call of the `Finish` that it was made with."""

    def start(self) -> None:
        """Be ready to run; called once, before the first claim."""

    def run(self, leases: Sequence[Lease]) -> None:
        """Begin attempts and return at once; there is a free slot for each."""

    def stop(self) -> None:
        """End what still runs: the grace period is over. Called once, and returns soon.

        What it does not finish itself is handed back right after it.
        """


class Routes:
    """The executors of the handlers: Python functions by name, callbacks by queue and name.

    A callback goes before a function: whoever registers an endpoint means every runner.
    """

    def __init__(self) -> None:
        self.functions: Mapping[str, Executor] = {}
        # Whoever reads the endpoints anew assigns a whole new mapping.
        self.callbacks: Mapping[tuple[str, str], Executor] = {}

    def find(self, queue: str, handler: str) -> Executor | None:
        """Return who runs this handler's tasks of the queue; None if nobody does here."""
        return self.callbacks.get((queue, handler)) or self.functions.get(handler)
