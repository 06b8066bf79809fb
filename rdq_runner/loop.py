"""A thread's life: do a step, sleep until the next is due or somebody wakes it, and so on."""

import threading
import time
from abc import ABC, abstractmethod

import psycopg

from rdq_runner.sessions import Session
from rdq_runner.sql import Functions


class Loop(ABC):
    """Repeats a step with a session of its own, through every trouble that the database has."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.stopping = threading.Event()
        self.worked_at: float | None = None  # when the last step ended well, by time.monotonic
        self._awake = threading.Event()

    @abstractmethod
    def step(self, rdq: Functions) -> float | None:
        """Do what is due now; return the seconds until the next step, None to wait to be woken."""

    def failed(self, error: psycopg.Error) -> float:
        """Return the seconds until the next step after one that the database did not do."""
        return self.session.pause

    def run(self) -> None:
        """Step until stopped; this is the body of a thread."""
        try:
            while not self.stopping.is_set():
                self._awake.wait(self._next())
                self._awake.clear()
        finally:
            self.session.close()

    def wake(self) -> None:
        """Begin the next step now, or right after the one that runs."""
        # Who wakes has changed something before, and what is set is cleared before the step: so
        # where it is set already the step sees the change.
        if not self._awake.is_set():
            self._awake.set()

    def stop(self) -> None:
        """End after the step that runs."""
        self.stopping.set()
        self.wake()

    def _next(self) -> float | None:
        try:
            with self.session.functions() as rdq:
                pause = self.step(rdq)
        except psycopg.Error as error:
            return self.failed(error)
        self.worked_at = time.monotonic()
        return pause
