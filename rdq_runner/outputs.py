"""Writing to an output that may stop taking anything: a pipe that nobody reads, a full disk.

Who writes never waits for it. A thread of its own does; what there is no room for meanwhile is left
out, and counted. Nothing that runs can be held up by its own log.
"""

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

# About three megabytes: what a busy runner says in a second.
MOST_LINES: Final = 20_000
# How long what is left may take to be written when the process ends.
FLUSH_SECONDS: Final = 2.0


class Output:
    """Lines on their way to a stream.

    :param stream: whose file descriptor is written to, where it has one.
    :param flowing: is told how many lines were left out, when it takes lines again, and returns
        what to write of that.
    """

    def __init__(self, stream: Any, flowing: Callable[[int], str]) -> None:
        self.left_out = 0
        """How many lines are lost, since the beginning."""
        self._stream = stream
        self._flowing = flowing
        self._untold = 0
        self._cut = False  # the last line that was written is not whole
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Begin with nothing: in a fork there is no thread, and the lines are the parent's."""
        self._changed = threading.Condition()
        self._texts: deque[tuple[str, int]] = deque()
        self._waiting = 0
        self._busy = False
        self._thread: threading.Thread | None = None

    def write(self, text: str, lines: int) -> None:
        """Write some lines soon, or leave all of them out."""
        with self._changed:
            if self._waiting + lines > max(MOST_LINES, lines):
                self._leave_out(lines)
                return
            self._texts.append((text, lines))
            self._waiting += lines
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rdq-log", daemon=True)
                self._thread.start()
            elif not self._busy:
                self._changed.notify_all()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until everything is written, but not for longer than that; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._texts or self._busy), seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._texts)
                self._busy = True
                taken = [*self._texts]
                self._texts.clear()
                self._waiting = 0
            text = "".join([text for text, _ in taken])
            if not self._put(text):
                with self._changed:
                    self._leave_out(sum(lines for _, lines in taken))
            elif self._untold:
                with self._changed:
                    untold, self._untold = self._untold, 0
                self._put(self._flowing(untold))

    def _leave_out(self, lines: int) -> None:
        self.left_out += lines
        self._untold += lines

    def _put(self, text: str) -> bool:
        """Write a text, however long that takes; False where the output does not take it."""
        try:
            try:
                descriptor = self._stream.fileno()
            except (AttributeError, OSError, ValueError):
                self._stream.write(text)
                self._stream.flush()
                return True
            # Not the stream: a thread that waits in it when the process ends brings that down.
            rest = memoryview(("\n" * self._cut + text).encode(errors="backslashreplace"))
            while rest:
                rest = rest[_write(descriptor, rest) :]
                self._cut = bool(rest)
        except (OSError, ValueError):
            return False
        return True


def _write(descriptor: int, data: memoryview) -> int:
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:  # whoever else has it made it so
            select.select([], [descriptor], [], 1.0)
