"""Times as people type them, and as they read them.

A time is relative (``2h``, ``3 days ago``, ``in 10 minutes``) or absolute (ISO 8601; without an
offset it is the local time of this machine). What a relative one is relative to is the clock of the
database.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import click

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART: Final = re.compile(
    r"(\d+(?:\.\d+)?)\s*"
    r"(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])[\s,]*"
)
_RELATIVE: Final = re.compile(rf"(?:in\s+)?(?:{_PART.pattern})+(?:ago)?")
_LONGEST: Final = timedelta(days=36525)


@dataclass(frozen=True)
class Moment:
    """A time, or how far from now it is."""

    at: datetime | None = None
    shift: timedelta = timedelta()

    def on(self, now: datetime) -> datetime:
        """Return the time, for a clock that shows `now`."""
        return self.at or now + self.shift


def past(text: str) -> Moment:
    """Read a time; what says neither "in" nor "ago" was before now.

    :raises click.BadParameter: it is none.
    """
    return _moment(text, ahead=False)


def future(text: str) -> Moment:
    """Read a time; what says neither "in" nor "ago" will be after now.

    :raises click.BadParameter: it is none.
    """
    return _moment(text, ahead=True)


def duration(text: str) -> timedelta:
    """Read a length of time, such as ``10m`` or ``1 hour 30 minutes``.

    :raises click.BadParameter: it is none.
    """
    words = text.strip().lower()
    if re.fullmatch(rf"(?:{_PART.pattern})+", words) and (span := _sum(words)) <= _LONGEST:
        return span
    raise click.BadParameter(f"{text!r} is no length of time: give 30s, '1h 30m' or '2 days'")


def relative(at: datetime, now: datetime) -> str:
    """Say a time as people do: ``3m 20s ago``, ``in 2h 5m``."""
    if abs(at - now) < timedelta(seconds=1):
        return "now"
    return f"in {length(at - now)}" if at > now else f"{length(now - at)} ago"


def length(span: timedelta) -> str:
    """Say a length of time in its two largest units: ``45s``, ``3m 20s``, ``2d 4h``."""
    seconds = abs(span).total_seconds()
    if seconds < 1:
        return f"{seconds:.1g}s" if seconds else "0s"
    rest = int(seconds)
    parts: list[str] = []
    for unit, size in reversed([*_UNITS.items()][:-1]):
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    sign = "-" if span < timedelta() else ""
    return sign + " ".join(part for part in parts[:2] if part)


def absolute(at: datetime) -> str:
    """Write a time to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def _moment(text: str, *, ahead: bool) -> Moment:
    words = text.strip().lower()
    if words == "now":
        return Moment()
    if _RELATIVE.fullmatch(words) and (shift := _sum(words)) <= _LONGEST:
        back = words.endswith("ago") or not (words.startswith("in") or ahead)
        return Moment(shift=-shift if back else shift)
    try:
        at = datetime.fromisoformat(text.strip())
        return Moment(at=at if at.tzinfo else at.astimezone())
    except (ValueError, OverflowError, OSError):
        example = "'in 2h'" if ahead else "2h, '3 days ago'"
        raise click.BadParameter(
            f"{text!r} is no time: give {example} or 2026-01-31T18:00:00Z"
        ) from None


def _sum(text: str) -> timedelta:
    seconds = sum(float(amount) * _UNITS[unit[0]] for amount, unit in _PART.findall(text))
    return timedelta(seconds=min(seconds, 1e10))
