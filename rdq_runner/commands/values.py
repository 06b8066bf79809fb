"""What the database gives, as text for people and as JSON for machines."""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from rdq_runner.commands.times import absolute, length, relative
from rdq_runner.storable import Json
from rdq_runner.visible import is_visible, visible

# Of a text in a table.
CELL: Final = 200

# Shares of a whole, and times that are read one after another.
_SHARES: Final = frozenset({"share", "halt_at"})
_AXES: Final = frozenset({"bucket_at"})

_SUSPECT: Final = re.compile(r"[^ -~]")


def plain(value: Any) -> Json:
    """Return a value as JSON has it.

    Times are ISO 8601 in UTC, lengths of time seconds, bytes base64.
    """
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def document(value: Any, *, indent: int | None = None) -> str:
    """Return a value as a text of JSON in which nothing acts on a terminal."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    return _SUSPECT.sub(lambda found: _escape(found.group()), text)


def words(name: str, value: Any, now: datetime, *, whole: bool = False) -> str:
    """Return a value as a person reads it, in one line.

    :param name: of the column.
    :param whole: all of a text, in its lines, and times absolute too.
    """
    match value:
        case None | "":
            return "-"
        case dict() | list() if not value:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime() if name in _AXES:
            return absolute(value)
        case datetime():
            ago = relative(value, now)
            return f"{absolute(value)} ({ago})" if whole else ago
        case timedelta():
            return length(value)
        case float() if name in _SHARES:
            return f"{value:.1%}"
        case float():
            return f"{value:.6g}"
        case list() if not any(isinstance(item, dict | list) for item in value):
            return ", ".join(words(name, item, now, whole=whole) for item in value)
        case dict() | list() | bytes():
            return _cut(document(value), whole)
    return _cut(visible(str(value), keep="\n" if whole else ""), whole)


def _cut(text: str, whole: bool) -> str:
    return text if whole or len(text) <= CELL else f"{text[: CELL - 1]}…"


def _escape(character: str) -> str:
    if character == "\n" or is_visible(character):
        return character
    # Outside of its texts JSON has no such characters.
    return json.dumps(character)[1:-1] if ord(character) != 0x7F else "\\u007f"
