"""Says in the database that this runner lives, for people to look at: nothing depends on it."""

import importlib.metadata
import logging
import random
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import psycopg

from rdq_runner import storable
from rdq_runner.leases import Leases
from rdq_runner.logs import say
from rdq_runner.loop import Loop
from rdq_runner.sessions import Session, is_outage
from rdq_runner.sql import Functions

SEEN_SECONDS: Final = 5.0
_HOST_BYTES: Final = 240


def package_version() -> str:
    """Return the version of this package."""
    try:
        return importlib.metadata.version("rdq-runner")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a runner says of itself that does not change."""

    runner: str
    code_version: str | None
    queues: Sequence[str] | None
    concurrency: int
    host: str = field(default_factory=lambda: storable.text(socket.gethostname(), _HOST_BYTES))
    version: str = field(default_factory=package_version)


class Registry(Loop):
    """Renews the runner's row in ``rdq.runners``, and takes it out at the end.

    :param session: one whose failures are nobody else's.
    """

    def __init__(self, session: Session, entry: Entry, leases: Leases) -> None:
        super().__init__(session)
        self._entry = entry
        self._leases = leases
        self._seen = False
        self._refused = False

    def step(self, rdq: Functions) -> float:
        """Say that the runner lives."""
        entry = self._entry
        rdq.runner_seen(
            entry.runner,
            entry.host,
            entry.version,
            entry.code_version,
            entry.queues,
            entry.concurrency,
            in_flight=len(self._leases.running()),
            unreported=len(self._leases.finished()),
        )
        self._seen, self._refused = True, False
        return SEEN_SECONDS * random.uniform(0.8, 1.2)

    def failed(self, error: psycopg.Error) -> float:
        """Try again; an outage the others have said, a refusal is said here."""
        self._seen = False
        refusal = not is_outage(error) or isinstance(error, psycopg.ProgrammingError)
        if refusal and not self._refused:
            self._refused = True
            say(logging.WARNING, "runner is not registered", sqlstate=error.sqlstate)
        return SEEN_SECONDS * random.uniform(0.8, 1.2)

    def run(self) -> None:
        """Step until stopped, then leave."""
        try:
            super().run()
        finally:
            # Without a word where the last one failed: a shutdown does not wait for a lost server.
            if self._seen:
                self._leave()

    def _leave(self) -> None:
        # If that fails, the row says for itself when the runner was last seen.
        with suppress(psycopg.Error), self.session.functions() as rdq:
            rdq.runner_gone(self._entry.runner)
        self.session.close()
