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


def shortage(error: object) -> str | None:
    """Say what was short, if that is why something failed; None if it is not.

    :param error: an exception, or one that holds the reason, as those of urllib and aiohttp do.
    """
    if not isinstance(error, BaseException):
        return None
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return f"the runner's process is short of something: {error.strerror or error}"
    return shortage(getattr(error, "reason", None)) or shortage(getattr(error, "os_error", None))
