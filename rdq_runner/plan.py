"""What a runner claims, and how much of it at once."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rdq_runner.leases import Lease


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to claim, and how much of it.

    :param bounds: how many tasks of a queue may run at once, where that is less than all.
    """

    queues: Sequence[str] | None
    bounds: Mapping[str, int]
    runner: str
    code_version: str | None
    concurrency: int
    lease: timedelta | None
    poll_seconds: float
    max_unreported: int

    def __post_init__(self) -> None:
        for queue, bound in self.bounds.items():
            if bound < 1:
                raise ValueError(f"queue {queue!r} may run {bound} tasks at once: give at least 1")

    def rooms(self, running: Iterable[Lease]) -> list[tuple[Sequence[str] | None, int]]:
        """Return which queues to claim from together, and how many of their tasks have room."""
        if not self.bounds:
            return [(self.queues, self.concurrency)]
        counts = Counter(lease.claim.queue for lease in running)
        rooms: list[tuple[Sequence[str] | None, int]] = [
            ([queue], bound - counts[queue]) for queue, bound in self.bounds.items()
        ]
        if unbounded := [queue for queue in self.queues or () if queue not in self.bounds]:
            rooms.append((unbounded, self.concurrency))
        random.shuffle(rooms)  # so that none always finds the slots taken by another
        return rooms
