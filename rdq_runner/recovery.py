"""After an outage: what finished while the database was away is told before anybody takes it back.

Leases end during an outage, though those who hold them live, and some have the outcome in their
hands. So for a while after it a runner first delivers what it knows itself, and takes back no lease
that may have ended because of the outage: the others, too, have then delivered, or renewed. What
ended before the outage is taken back as ever.

Nobody may notice an outage: a network that was silent delivers what it has held up, and all that
shows is an answer that took long. So each call that takes leases back says when it was made, too:
the database knows by that for how long it was on its way.
"""

import math
import time
from datetime import timedelta
from typing import Final, NamedTuple

# Longer than a runner pauses between two tries, plus the time that a connection may take to open.
GRACE_SECONDS: Final = 20.0


# Where nobody had an answer for so long, and somebody waited for one, the database was away. Less
# would take a busy server for a silent network.
SILENT_SECONDS: Final = 1.0


class Spare(NamedTuple):
    """Which leases a call is not to take back; moments are by the database's clock, since 1970.

    :param interval: those that ended within that time before the call.
    :param asked_at: when the call was made. If that is long ago when it arrives, all that ended
        after `answered_at` are spared too.
    :param answered_at: when the database was heard of last.
    """

    interval: timedelta | None
    asked_at: float
    answered_at: float


class Recovery:
    """Since when there was no database. Only one thread at a time may tell it something."""

    def __init__(self) -> None:
        self._answered_at = time.monotonic()
        self._away_since: float | None = None
        self._back_at: float | None = None
        self._noticed = False  # by more than an answer that took long

    def lost(self) -> None:
        """Note that there is no database."""
        if not self.is_under_way:
            # Nobody knows when it went; it was there when it answered last.
            self._away_since = self._answered_at
        self._noticed = True
        self._back_at = None

    def found(self, waited: float = 0.0) -> None:
        """Note an answer of the database, after so many seconds."""
        now = time.monotonic()
        silent = min(waited, now - self._answered_at) > SILENT_SECONDS
        if silent and not (self._noticed and self.is_under_way):
            # Of several in a row the last one counts, or a slow server would be away for ever.
            self._away_since, self._back_at, self._noticed = self._answered_at, now, False
        elif self._away_since is not None and self._back_at is None:
            self._back_at = now
        self._answered_at = now

    @property
    def is_under_way(self) -> bool:
        """Whether the database is away, or came back a short while ago."""
        if self._away_since is None:
            return False
        return self._back_at is None or time.monotonic() < self._back_at + GRACE_SECONDS

    @property
    def deliver_until(self) -> float | None:
        """What ended before this is to be told before anything else; None where nothing is."""
        if not (self._noticed and self.is_under_way):
            return None
        return math.inf if self._back_at is None else self._back_at

    def spare(self, clock_ahead: float) -> Spare:
        """Return what a call that is made now is to spare.

        :param clock_ahead: of the database, of `time.monotonic`.
        """
        now = time.monotonic()
        away_since = self._away_since if self.is_under_way else None
        interval = None if away_since is None else timedelta(seconds=now - away_since)
        return Spare(interval, clock_ahead + now, clock_ahead + self._answered_at)
