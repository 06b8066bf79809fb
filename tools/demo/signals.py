"""Interruptions: whatever ends the demo early is one KeyboardInterrupt, at a moment that fits."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_for_ctrl_c() -> None:
    """Have a kill, and the end of the terminal, clean up as Ctrl-C does. Only the first counts."""
    # What is ignored stays so, as under nohup.
    heeded = [number for number in _NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]

    def interrupt(number: int, frame: FrameType | None) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in heeded:
        signal.signal(number, interrupt)


@contextmanager
def held_back() -> Iterator[None]:
    """Let signals wait, also those to processes that are started now, which inherit it.

    A server that is interrupted while it is being made could not be removed whole.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
