"""When a runner claims next: at once when something is due and it was idle, else for several slots.

A claim that returned less than it asked for has taken all that was due: a slot that becomes free
means nothing then, and what becomes due is announced, or known before. A claim that filled the
slots has probably left something. Slots then become free one by one, and each claim costs the
database about the same, however little it takes; so it waits until half of them are free, but no
longer than the last claim took: no slot is idle for more than twice the time that a claim needs.

Anybody may announce something, and of several runners only one finds it. So the next claim for an
announcement waits a little after one that found nothing, and longer after several such in a row.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Final

# At most, since a claim may have waited for a lock.
LINGER_SECONDS: Final = 0.003
# After a claim for an announcement that found nothing; twice that after two in a row, and so on.
IN_VAIN_SECONDS: Final = 0.005
LONGEST_IN_VAIN_SECONDS: Final = 0.1


class Turns:
    """Safe for threads: one claims, any other may say why it should.

    :param slots: how many there are.
    :param free: returns how many of them are free. It may be less than none.
    """

    def __init__(self, slots: int, free: Callable[[], int]) -> None:
        self._enough = (slots + 1) // 2
        self._free = free
        self._lock = threading.Lock()
        self._due_at = 0.0
        self._hungry = False
        self._freed_at: float | None = None
        self._linger = 0.0
        self._vain = 0  # claims for announcements, the last ones in a row, that found nothing
        self._announce_at = 0.0

    def due_in(self, seconds: float) -> None:
        """Note that something will be due."""
        at = time.monotonic() + seconds
        with self._lock:
            self._due_at = min(self._due_at, at)

    def announced(self) -> None:
        """Note that something is said to be due now."""
        with self._lock:
            self._due_at = min(self._due_at, max(self._announce_at, time.monotonic()))

    def freed(self) -> bool:
        """Note that a slot is free; return whether who claims has to know."""
        first = self._freed_at is None
        if first:
            self._freed_at = time.monotonic()
        return self._hungry and (first or self._free() >= self._enough)

    def pause(self) -> float:
        """Return the seconds until the next claim; infinity until a slot becomes free."""
        now = time.monotonic()
        if self._free() <= 0:
            self._hungry = True
            # Who has freed one just now did not know that somebody waits.
            if self._free() <= 0:
                return math.inf
        if not self._hungry or self._freed_at is None:
            return max(self._due_at - now, 0.0)
        if self._free() >= self._enough:
            return 0.0
        return max(self._freed_at + self._linger - now, 0.0)

    def begin(self) -> None:
        """Note that a claim begins, which finds all that was due."""
        with self._lock:
            self._due_at = math.inf
        self._freed_at = None

    def end(self, *, hungry: bool, seconds: float, told: bool = False, found: bool = True) -> None:
        """Note that it has ended.

        :param hungry: there may be more, for which a slot has to become free.
        :param seconds: that it took.
        :param told: something had been announced.
        :param found: there was something to claim.
        """
        self._hungry = hungry
        self._linger = min(seconds, LINGER_SECONDS)
        if found:
            self._vain = 0
        elif told:
            pause = min(IN_VAIN_SECONDS * 2.0 ** min(self._vain, 16), LONGEST_IN_VAIN_SECONDS)
            self._vain += 1
            with self._lock:
                self._announce_at = time.monotonic() + pause
                self._due_at = max(self._due_at, self._announce_at)
