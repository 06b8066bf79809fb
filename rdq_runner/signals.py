"""Signals that this process takes for itself, and that what it forks must not inherit.

A handler of a task may fork, as ``multiprocessing`` does. Its processes would have our handlers for
SIGTERM and SIGINT, which do not end them: whoever terminates them would wait for ever.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

_before: Final[dict[int, Any]] = {}
"""What was set before we took a signal: that is what a forked process has."""


def to_stop() -> Sequence[int]:
    """Return the signals that ask a runner to stop.

    SIGHUP is one of them, as a closed terminal sends it, unless it is ignored, as under nohup.
    """
    numbers = [signal.SIGTERM, signal.SIGINT]
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        numbers.append(hangup)
    return numbers


@contextmanager
def taken(numbers: Sequence[int], handle: Callable[[], object]) -> Iterator[None]:
    """Have signals call `handle`, which must be safe to call at any instruction.

    Does nothing outside of the main thread, where signals cannot be taken.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outer = {number: signal.getsignal(number) for number in numbers}
    for number, handler in outer.items():
        _before.setdefault(number, handler)
        signal.signal(number, lambda *_: handle())
    try:
        yield
    finally:
        for number, handler in outer.items():
            signal.signal(number, handler)
            if _before[number] is handler:
                del _before[number]


def _hold_back() -> None:
    # Of a signal that came between the fork and our giving back, nobody would hear.
    signal.pthread_sigmask(signal.SIG_BLOCK, _before)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _before)


def _give_back() -> None:
    for number, handler in _before.items():
        signal.signal(number, handler)
    _let_through()
    _before.clear()


os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_give_back)
