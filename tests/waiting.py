"""Waiting for what another session or process does, with a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

LONGEST_SECONDS = 30.0
"""For what comes at once, or never: a busy machine takes this long to start a process."""


def wait_until(predicate: Callable[[], Result], seconds: float = LONGEST_SECONDS) -> Result:
    """Ask until the answer is true, and return it.

    :raises AssertionError: it was not true within the seconds.
    """
    deadline = time.monotonic() + seconds
    while not (result := predicate()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
    return result
