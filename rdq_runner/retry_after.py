"""The field Retry-After (RFC 9110, section 10.2.3): a number of seconds, or a date."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

# Whatever is asked for beyond this is this; the database caps it further, at a day.
LONGEST_SECONDS: Final = 1e9

_SECONDS: Final = re.compile("[0-9]+")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH: Final = "(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME: Final = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DAY: Final = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY: Final = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"

# The three forms of HTTP-date that a recipient must accept (RFC 9110, section 5.6.7): IMF-fixdate,
# and the obsolete ones of RFC 850 and of asctime.
_DATES: Final = (
    re.compile(f"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(f"{_LONG_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(f"{_DAY} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)


def seconds(values: Iterable[str], now: datetime) -> float | None:
    """Return how long to wait, None if that is not said in a form that the RFC knows.

    :param values: of all fields of that name; the longest wait counts.
    :param now: what a date is compared with.
    """
    waits = [wait for value in values if (wait := _wait(value.strip(" \t"), now)) is not None]
    return max(waits, default=None)


def date(value: str, now: datetime) -> datetime | None:
    """Return the time that an HTTP-date means, None if the value is not one.

    :param now: decides the century of a year of two digits.
    """
    match = next((match for form in _DATES if (match := form.fullmatch(value))), None)
    if match is None:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        # More than 50 years in the future is the past.
        year += now.year // 100 * 100
        if year > now.year + 50:
            year -= 100
    try:
        return datetime(
            year,
            _MONTHS.index(match["month"]) // 3 + 1,
            int(match["day"]),
            int(match["hour"]),
            int(match["minute"]),
            min(int(match["second"]), 59),  # 60 is a leap second, which Python has not
            tzinfo=UTC,
        )
    except ValueError:
        return None


def _wait(value: str, now: datetime) -> float | None:
    if _SECONDS.fullmatch(value):
        # Python refuses integers of thousands of digits.
        digits = value.lstrip("0")
        return LONGEST_SECONDS if len(digits) > 9 else float(digits or 0)
    at = date(value, now)
    return None if at is None else min(max((at - now) / timedelta(seconds=1), 0.0), LONGEST_SECONDS)
