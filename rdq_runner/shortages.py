"""What this process or its machine lacks for the moment: the runner's own trouble.

Out of file descriptors, say, no handler can do its work, whatever its input. That must not cost a
task an attempt: it is handed back, and the log says why.
"""

import errno
from typing import Final

RETRY_SECONDS: Final = 10.0

_NUMBERS: Final = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL}
)

# Where libraries keep the reason.
_REASONS: Final = ("reason", "os_error", "__cause__")


def shortage(error: BaseException) -> str | None:
    """Say what was short, if that is why something failed; None if it is not.

    Of an exception group all members must be.
    """
    # An exception's own code may run here, and raise anything.
    try:
        return _shortage(error)
    except BaseException:
        return None


def _shortage(error: object) -> str | None:
    if not isinstance(error, BaseException):
        return None
    if isinstance(error, BaseExceptionGroup):
        members = [_shortage(member) for member in error.exceptions]
        return members[0] if all(members) else None
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return f"the runner's process is short of something: {error.strerror or error}"
    if type(error) is RuntimeError and str(error) == "can't start new thread":
        return "the runner's process is short of something: threads"
    for name in _REASONS:
        reason = getattr(error, name, None)
        if reason is not None and (found := _shortage(reason)):
            return found
    return None
