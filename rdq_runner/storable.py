"""Text and documents that PostgreSQL takes, whatever they were made from.

``text`` and ``jsonb`` refuse NUL and lone surrogates; each becomes U+FFFD. What is longer than its
limit is cut on a character boundary and marked, here, so that it never travels to the database.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

MESSAGE_BYTES: Final = 4096
STACK_BYTES: Final = 65536
DETAIL_BYTES: Final = 16384
CUT: Final = "\n[cut by rdq]"

_STACK_HEAD_BYTES: Final = 16 * 1024
_STACK_TAIL_BYTES: Final = 47 * 1024
_DETAIL_DEPTH: Final = 32
# Bytes of a character in UTF-8.
_LONGEST: Final = 4
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def text(value: str, limit: int = MESSAGE_BYTES) -> str:
    """Return the value, storable, in at most `limit` bytes of UTF-8: its beginning if longer."""
    # No character is shorter than a byte, so the rest of a huge text is not even looked at.
    start = _clean(value[: limit + 1])
    if len(start) * _LONGEST <= limit or len(start.encode()) <= limit:
        return start
    return _head(start, limit - len(CUT)) + CUT


def stack(given: Sequence[str]) -> str:
    """Join the lines of a traceback: its beginning and its end where it is longer than 64 KiB."""
    return ends(lines(given))


def lines(given: Sequence[str]) -> str:
    """Join lines of a traceback.

    Each is cut as a message is: the last line of a traceback repeats the exception's message.
    """
    if max(map(len, given), default=0) * _LONGEST <= MESSAGE_BYTES:
        return _clean("".join(given))
    return "".join(map(text, given))


def ends(whole: str) -> str:
    """Return a stack, or its beginning and its end where it is longer than 64 KiB."""
    if len(whole) * _LONGEST <= STACK_BYTES or len(whole.encode()) <= STACK_BYTES:
        return whole
    return f"{_head(whole, _STACK_HEAD_BYTES)}{CUT}\n{_tail(whole, _STACK_TAIL_BYTES)}"


def document(value: object) -> Json:
    """Return the value as JSON that ``jsonb`` takes; what has no form in JSON becomes its `str`."""
    storable = _document(value, _DETAIL_DEPTH)
    written = json.dumps(storable, ensure_ascii=False)
    if len(written.encode()) <= DETAIL_BYTES:
        return storable
    return {"cut by rdq": text(written)}


def _document(value: object, depth: int) -> Json:
    if depth > 0 and isinstance(value, Mapping):
        return {text(str(key)): _document(item, depth - 1) for key, item in value.items()}
    if depth > 0 and isinstance(value, list | tuple | set | frozenset):
        return [_document(item, depth - 1) for item in value]
    # NaN and infinities are not JSON; integers of thousands of digits are no numeric of PostgreSQL.
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    try:
        return text(str(value), DETAIL_BYTES)
    except Exception:  # as of an integer of thousands of digits
        return f"<{type(value).__name__}>"


def _clean(value: str) -> str:
    # Most text is ASCII: that takes a hundredth of the time.
    if value.isascii() and "\0" not in value:
        return value
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def _head(value: str, size: int) -> str:
    return value[:size].encode()[:size].decode(errors="ignore")


def _tail(value: str, size: int) -> str:
    return value[-size:].encode()[-size:].decode(errors="ignore")
