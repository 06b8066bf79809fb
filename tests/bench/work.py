"""What workers written in Python do with a task, whoever's they are."""

import os
import socket
import time
from typing import Final

FAILURES: Final = 3
"""A task of the storm fails so many times, and succeeds then."""
FRAMES: Final = 9
"""Two lines each: with the first and the last line, and the worker's own, a stack of 20 or more."""
SOCKET_VARIABLE: Final = "RDQ_BENCH_SOCKET"


class Unavailable(Exception):
    """The failure of a storm."""


def storm(attempt: int) -> None:
    """Fail for the first attempts.

    :param attempt: from 1 on.
    """
    if attempt <= FAILURES:
        _down(FRAMES)


def mostly(attempt: int, number: int) -> None:
    """Fail at the first attempt of each twentieth task."""
    if attempt == 1 and number % 20 == 0:
        _down(FRAMES)


def stamp(payload: bytes) -> None:
    """Send the payload and the time of `time.monotonic_ns` to the benchmark."""
    now = time.monotonic_ns()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"%s %d" % (payload, now), os.environ[SOCKET_VARIABLE])


# Two functions in turn: a traceback folds lines that repeat.
def _down(frames: int) -> None:
    if frames == 0:
        raise Unavailable("the service that this task calls does not answer: 503")
    _further_down(frames - 1)


def _further_down(frames: int) -> None:
    if frames == 0:
        raise Unavailable("the service that this task calls does not answer: 503")
    _down(frames - 1)
