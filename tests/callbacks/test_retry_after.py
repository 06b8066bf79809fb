"""J1: Retry-After in each form that RFC 9110 knows, and in the many that it does not."""

from datetime import UTC, datetime

import pytest

from rdq_runner import retry_after
from rdq_runner.answers import wait

NOW = datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("00000000000000000000000120", 120),
        (" \t120 ", 120),
        ("9999999999", 1e9),
        ("99999999999999999999", 1e9),
        ("9" * 10_000, 1e9),
        ("Fri, 06 Nov 2026 08:51:37 GMT", 120),
        ("Friday, 06-Nov-26 08:51:37 GMT", 120),
        ("Fri Nov  6 08:51:37 2026", 120),
        ("Fri, 06 Nov 2026 08:49:60 GMT", 22),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 0),
        ("Sun Nov  6 08:49:37 1994", 0),
        ("Sun, 06 Nov 9999 08:49:37 GMT", 1e9),
    ],
)
def test_a_form_of_the_standard_says_how_long_to_wait(value: str, seconds: float) -> None:
    assert retry_after.seconds([value], NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "-5",
        "+5",
        "1.5",
        "1e3",
        "0x10",
        "١٢",  # digits, but not those of HTTP
        "120, 240",
        "120s",
        "soon",
        "2026-11-06T08:51:37Z",
        "Fri, 6 Nov 2026 08:51:37 GMT",
        "Fri, 06 Nov 2026 08:51:37",
        "Fri, 06 Nov 2026 08:51:37 +0000",
        "Fri, 06 nov 2026 08:51:37 GMT",
        "Fri, 31 Feb 2026 08:51:37 GMT",
        "Fri, 06 Nov 2026 25:51:37 GMT",
        "Fri, 06 Nov 0000 08:51:37 GMT",
        "Fri Nov 06 08:51:37 2026 GMT",
        "120\0",
    ],
)
def test_anything_else_says_nothing(value: str) -> None:
    assert retry_after.seconds([value], NOW) is None


def test_of_two_fields_the_longer_wait_counts_and_a_broken_one_does_not() -> None:
    assert retry_after.seconds(["30", "120"], NOW) == 120
    assert retry_after.seconds(["120", "soon"], NOW) == 120
    assert retry_after.seconds([], NOW) is None


@pytest.mark.parametrize(
    ("year", "meant"), [("76", 2076), ("77", 1977), ("99", 1999), ("00", 2000)]
)
def test_a_year_of_two_digits_is_at_most_fifty_years_ahead(year: str, meant: int) -> None:
    found = retry_after.date(f"Sunday, 06-Nov-{year} 08:49:37 GMT", NOW)
    assert found
    assert found.year == meant


def test_a_date_is_compared_with_the_clock_of_the_server_that_sent_it() -> None:
    slow = {
        "date": ["Fri, 06 Nov 2026 07:00:00 GMT"],
        "retry-after": ["Fri, 06 Nov 2026 07:02:00 GMT"],
    }
    assert wait(slow, NOW) == 120
    assert wait({**slow, "date": ["yesterday"]}, NOW) == 0
