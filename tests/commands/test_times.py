"""Times as people type them, and as they read them."""

from datetime import UTC, datetime, timedelta, timezone

import click
import pytest

from rdq_runner.commands.times import absolute, duration, future, length, past, relative

NOW = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shift"),
    [
        ("2h", -timedelta(hours=2)),
        ("3 days ago", -timedelta(days=3)),
        ("1h30m", -timedelta(hours=1, minutes=30)),
        ("1 hour, 30 minutes ago", -timedelta(hours=1, minutes=30)),
        ("90s", -timedelta(seconds=90)),
        ("1.5 weeks", -timedelta(days=10.5)),
        ("2H AGO", -timedelta(hours=2)),
        ("in 10 min", timedelta(minutes=10)),
        ("now", timedelta()),
    ],
)
def test_a_relative_time_is_before_now_unless_it_says_in(text: str, shift: timedelta) -> None:
    assert past(text).on(NOW) == NOW + shift


def test_where_a_time_lies_ahead_a_relative_one_is_after_now_unless_it_says_ago() -> None:
    assert future("2h").on(NOW) == NOW + timedelta(hours=2)
    assert future("in 2h").on(NOW) == NOW + timedelta(hours=2)
    assert future("2h ago").on(NOW) == NOW - timedelta(hours=2)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31T18:00:00Z", NOW),
        ("2026-01-31 19:00+01:00", NOW),
        ("20260131T180000Z", NOW),
        ("2026-01-31T18:00", NOW.replace(tzinfo=None).astimezone()),
        ("2026-01-31", datetime(2026, 1, 31).astimezone()),
    ],
)
def test_an_absolute_time_without_an_offset_is_local(text: str, at: datetime) -> None:
    assert past(text).on(NOW + timedelta(days=9)) == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "h",
        "2 fortnights",
        "2hours3",
        "-2h",
        "yesterday",
        "2026-13-01",
        "2h ago ago",
        "9999999999999999999999 weeks",
        "0001-01-01",
        "9" * 400 + "d",
    ],
)
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    for read in (past, future):
        with pytest.raises(click.BadParameter, match=r"is no time: give .*2026-01-31T18:00:00Z"):
            read(text)


def test_a_length_of_time_is_neither_before_nor_after() -> None:
    assert duration("1h 30m") == timedelta(minutes=90)
    for text in ("in 10m", "10m ago", "10", "", "2026-01-31"):
        with pytest.raises(click.BadParameter, match="is no length of time"):
            duration(text)


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (timedelta(), "0s"),
        (timedelta(milliseconds=20), "0.02s"),
        (timedelta(seconds=59.9), "59s"),
        (timedelta(seconds=200), "3m 20s"),
        (timedelta(hours=2), "2h"),
        (timedelta(days=2, hours=4, minutes=3), "2d 4h"),
        (timedelta(days=2, minutes=3), "2d"),
        (timedelta(days=400), "400d"),
        (-timedelta(seconds=61), "-1m 1s"),
    ],
)
def test_a_length_is_said_in_its_two_largest_units(span: timedelta, said: str) -> None:
    assert length(span) == said


def test_a_time_is_said_as_people_do() -> None:
    assert relative(NOW - timedelta(seconds=200), NOW) == "3m 20s ago"
    assert relative(NOW + timedelta(hours=2), NOW) == "in 2h"
    assert relative(NOW + timedelta(milliseconds=5), NOW) == "now"
    assert absolute(NOW.astimezone(timezone(timedelta(hours=5)))) == "2026-01-31 18:00:00Z"
