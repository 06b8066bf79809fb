"""What workers written in Python do with a task, whoever's they are."""

import os
import time
from typing import Final

FAILURES: Final = 3
"""A task of the storm fails so many times, and succeeds then."""
FRAMES: Final = 9
"""Two lines each: with the first and the last line, and the worker's own, a stack of 20 or more."""
STAMPS_VARIABLE: Final = "RDQ_BENCH_STAMPS"
"""Names a pipe in the environment; not a socket of datagrams, which other languages may lack."""


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


def fail() -> None:
    """Fail, at every attempt."""
    _down(FRAMES)


def stamp(payload: bytes) -> None:
    """Send the payload and the time of `time.monotonic_ns` to the benchmark, as a line."""
    now = time.monotonic_ns()
    pipe = os.open(os.environ[STAMPS_VARIABLE], os.O_WRONLY)
    try:
        os.write(pipe, b"%s %d\n" % (payload, now))  # less than PIPE_BUF: one piece
    finally:
        os.close(pipe)


# Two functions in turn: a traceback folds lines that repeat.
def _down(frames: int) -> None:
    if frames == 0:
        raise Unavailable("the service that this task calls does not answer: 503")
    _further_down(frames - 1)


def _further_down(frames: int) -> None:
    if frames == 0:
        raise Unavailable("the service that this task calls does not answer: 503")
    _down(frames - 1)
