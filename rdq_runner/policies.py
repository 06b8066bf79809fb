"""What the database says about how a runner is to run the tasks of a queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of a queue that a runner applies itself; the timeout is in seconds."""

    handler_timeout: float | None = None
    on_version_mismatch: Literal["run", "dead"] = "run"


class Policies:
    """The policies of the queues, as they were read last."""

    def __init__(self) -> None:
        self._by_queue: Mapping[str, Policy] = {}

    def refresh(self, by_queue: Mapping[str, Policy]) -> None:
        """Replace all."""
        self._by_queue = by_queue

    def of(self, queue: str) -> Policy:
        """Return a queue's policy; the default one for a queue that is new."""
        return self._by_queue.get(queue, Policy())

    def queues(self) -> list[str]:
        """Return the names of all queues."""
        return list(self._by_queue)
