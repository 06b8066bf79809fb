"""How many of one handler run at once, and what that means for the next claim.

A claim takes whatever is due in a queue, so a task of a handler that has no room left would have to
wait while its lease runs, or be handed back. Instead nothing is claimed from a queue in which such
a handler has been met, until there is room, and no more than there is room for.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from rdq_runner.leases import Lease

Queues = Sequence[str] | None


class Limits:
    """The handlers that have a limit, and the queues in which each has been met.

    Only the thread that claims uses it.

    :param most: of each such handler at once.
    :param names: returns those of all queues, for a runner that works in all.
    """

    def __init__(self, most: Mapping[str, int], names: Callable[[], Sequence[str]]) -> None:
        self._most = most
        self._names = names
        self._met: dict[str, set[str]] = {}

    def admit(self, lease: Lease, running: Callable[[], Iterable[Lease]]) -> bool:
        """Note where a handler is met; whether there is room for it among those that run."""
        name = lease.claim.handler
        if name not in self._most:
            return True
        self._met.setdefault(lease.claim.queue, set()).add(name)
        return _count(name, running()) <= self._most[name]

    def apart(self, queues: Queues) -> list[Queues]:
        """Return the parts of a claim: each queue that has a limited handler, and all the others.

        They come in random order, so that none always finds the slots taken by another.
        """
        if not self._met:
            return [queues]
        names = self._names() if queues is None else queues
        parts: list[Queues] = [[queue] for queue in names if queue in self._met]
        if others := [queue for queue in names if queue not in self._met]:
            parts.append(others)
        random.shuffle(parts)
        return parts

    def room(self, queues: Queues, running: Callable[[], Sequence[Lease]]) -> float:
        """Return how many tasks of such a part may be claimed, whatever their handlers are."""
        met = [name for queue in queues or () for name in self._met.get(queue, ())]
        if not met:
            return float("inf")
        leases = running()
        return min(self._most[name] - _count(name, leases) for name in met)


def _count(name: str, running: Iterable[Lease]) -> int:
    return sum(lease.claim.handler == name for lease in running)
