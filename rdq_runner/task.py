"""A task, as its handler sees it."""

import json
import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rdq_runner.outcomes import MalformedPayload


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt at a task. Its `repr` leaves out what may be secret: payload and headers.

    `attempt_no` counts the attempts of the whole history, `attempt_count` those of this life (this
    one included), `redrive_count` the lives before.
    """

    id: UUID
    queue: str
    handler: str
    payload: bytes = field(repr=False)
    content_type: str = "text/plain"
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    handler_version: str | None = None
    attempt_no: int = 1
    attempt_count: int = 1
    redrive_count: int = 0
    created_at: datetime | None = None
    give_up_at: datetime | None = None
    cancellation: threading.Event = field(
        default_factory=threading.Event, repr=False, compare=False
    )

    @property
    def text(self) -> str:
        """The payload as UTF-8.

        :raises MalformedPayload: it is not; the task is dead at once.
        """
        try:
            return self.payload.decode()
        except UnicodeDecodeError as error:
            raise MalformedPayload(f"the payload is not UTF-8: {error}") from error

    def json(self) -> Any:
        """Return the value of the payload, which is JSON.

        :raises MalformedPayload: it is not, or is nested too deeply; the task is dead at once.
        """
        try:
            return json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            raise MalformedPayload(f"the payload is not JSON: {error}") from error

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the runner shuts down, or somebody else may hold the task by now.

        A handler that stops because of it raises `Cancelled`.
        """
        return self.cancellation.is_set()
