"""How a command ends, as scripts see it."""

from enum import IntEnum
from typing import Final

from rdq_runner.visible import visible


class Exit(IntEnum):
    """The exit status of every command."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    WOULD_CHANGE = 3
    NOTHING = 4
    REFUSED = 5
    STOPPED = 6
    DIED_AGAIN = 7
    FOUND = 8
    INTERRUPTED = 130


MEANINGS: Final = {
    Exit.DONE: "done; a list may be empty",
    Exit.ERROR: "the database refuses it or is away, a file is wrong, or the editor failed",
    Exit.USAGE: "the command line is wrong",
    Exit.WOULD_CHANGE: "with --dry-run: there is something to change; nothing was",
    Exit.NOTHING: "nothing matches, nothing was edited, or what is named does not exist",
    Exit.REFUSED: "not confirmed; nothing was changed",
    Exit.STOPPED: "the redrive was halted, paused or cancelled; or a purge could not go on",
    Exit.DIED_AGAIN: "the redrive that was watched is done, and some of its tasks died again",
    Exit.FOUND: "doctor: there are warnings or errors",
    Exit.INTERRUPTED: "ended with Ctrl-C; what had begun goes on",
}


class Failure(Exception):
    """A command ends with a message; whatever acts on a terminal is made visible in it."""

    def __init__(self, message: str, status: Exit = Exit.ERROR, hint: str | None = None) -> None:
        text = f"{message}\nHint: {hint}" if hint else message
        super().__init__(visible(text, keep="\n"))
        self.status = status
