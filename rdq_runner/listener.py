"""Hears from the database that something is due, so that a poll need not find it."""

from collections.abc import Callable, Sequence
from typing import Final

from rdq_runner.loop import Loop
from rdq_runner.sessions import Database, Session
from rdq_runner.sql import Functions

# How long a stop may go unnoticed; a notice itself is heard at once.
LISTEN_SECONDS: Final = 0.5


class Listener(Loop):
    """Calls `due` when something in the queues is due, and whenever it has begun to listen anew.

    Listening comes first and the poll that `due` causes after it, so nothing slips between them.
    """

    def __init__(
        self, database: Database, queues: Sequence[str] | None, due: Callable[[], None]
    ) -> None:
        super().__init__(Session(database, "listener", self._opened))
        self._queues = queues
        self._due = due

    def step(self, rdq: Functions) -> float:
        """Listen for a while."""
        for queue in rdq.due_queues(timeout=LISTEN_SECONDS):
            if self._queues is None or queue in self._queues:
                self._due()
        return 0

    def _opened(self, rdq: Functions) -> None:
        rdq.listen()
        self._due()
