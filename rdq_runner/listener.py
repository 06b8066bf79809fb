"""Hears from the database that something is due, so that a poll need not find it; or is dead.

Behind a pooler that lends a server process for one transaction, as PgBouncer's transaction mode
does, LISTEN is taken and nothing is ever heard. A probe finds that out; it is said once, and the
runner polls alone.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final
from uuid import uuid4

import psycopg

from rdq_runner.logs import say
from rdq_runner.loop import Loop
from rdq_runner.sessions import Database, Session
from rdq_runner.sql import Functions

# How long a stop may go unnoticed; a notice itself is heard at once.
LISTEN_SECONDS: Final = 0.5
# A connection on which nothing is heard may be dead: how often to ask it, and how long it has then.
ALIVE_SECONDS: Final = 15.0
ANSWER_SECONDS: Final = 10.0
# How long a probe may be on its way: so many times LISTEN_SECONDS.
PROBE_ROUNDS: Final = 6
# One who hears nothing looks whether that is still so: the pooler may be gone.
DEAF_SECONDS: Final = 3600.0


class Listener(Loop):
    """Calls `due` when something in the queues is due, and whenever it has begun to listen anew.

    Listening comes first and the poll that `due` causes after it, so nothing slips between them.
    `due` wakes who claims. To claim in this thread was no faster: the other has to be woken all the
    same, to plan the next claim.

    :param died: is told of dead letters that this runner's sessions made, with the notice and the
        session's purpose. It is this session that listens, because it always reads: one that did
        not would fill the server's queue of notices.
    """

    def __init__(
        self,
        database: Database,
        queues: Sequence[str] | None,
        due: Callable[[], None],
        died: Callable[[str, str], None],
    ) -> None:
        super().__init__(Session(database, "listener", self._opened))
        self._database = database
        self._queues = queues
        self._due = due
        self._died = died
        self._deaf = False
        self._said = False
        self._ask_at = 0.0
        self.session.patience = ANSWER_SECONDS

    def step(self, rdq: Functions) -> float:
        """Listen for a while."""
        if self._deaf:
            self.session.close()
            return DEAF_SECONDS
        if time.monotonic() >= self._ask_at:
            self._listen(rdq)
        for notice in rdq.notices(timeout=LISTEN_SECONDS):
            if notice.channel == "rdq_dead":
                if session := self._database.backends.get(notice.pid):
                    self._died(notice.payload, session)
            elif self._queues is None or notice.payload in self._queues:
                self._due()
        return 0

    def _opened(self, rdq: Functions) -> None:
        self._deaf = not hears(rdq, self._database, self.stopping.is_set)
        if not self._deaf:
            self._listen(rdq)
            self._due()
        elif not self._said and not self.stopping.is_set():
            self._said = True
            say(logging.WARNING, "cannot listen behind this pooler: the runner polls")

    def _listen(self, rdq: Functions) -> None:
        # Where it listens already this changes nothing, and is only answered.
        rdq.listen()
        self._ask_at = time.monotonic() + ALIVE_SECONDS


def hears(rdq: Functions, database: Database, stopped: Callable[[], bool] = lambda: False) -> bool:
    """Whether a notice of another session gets here; one of our own would, through any pooler.

    The channel is not that of the work: a server process that goes back into the pool goes on
    listening, and its next clients would be told of every submit.
    """
    if rdq.is_direct():
        return True
    try:
        rdq.listen_to_probes()
    except psycopg.errors.FeatureNotSupported:
        return False
    token = uuid4().hex
    with closing(database.connect()) as other:
        Functions(other).send_probe(token)
    return any(
        token in [notice.payload for notice in rdq.notices(timeout=LISTEN_SECONDS)]
        for _ in range(PROBE_ROUNDS)
        if not stopped()
    )
