"""When a runner claims: at once where it was idle, for several slots where it is busy."""

import math

import pytest

from rdq_runner import turns
from rdq_runner.turns import (
    IN_VAIN_SECONDS,
    LINGER_SECONDS,
    LONGEST_IN_VAIN_SECONDS,
    Turns,
)

SLOTS = 8
SOON = 1.01 * LINGER_SECONDS


class Clock:
    """A clock that stands still."""

    now = 1000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


class Case:
    """A runner that has claimed once, with some slots that are free."""

    def __init__(self) -> None:
        self.free = SLOTS
        self.turns = Turns(SLOTS, lambda: self.free)

    def claim(self, *, left: bool, seconds: float = 1.0) -> None:
        """Claim; if something was left, for want of a slot."""
        self.turns.begin()
        self.turns.end(hungry=left, seconds=seconds)

    def end_one(self) -> bool:
        """Let a handler end; return whether who claims is woken."""
        self.free += 1
        return self.turns.freed()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "time", clock)
    return clock


@pytest.fixture
def case(clock: Clock) -> Case:
    return Case()


def test_the_first_claim_comes_at_once(case: Case) -> None:
    assert case.turns.pause() == 0


def test_after_a_claim_of_all_that_was_due_a_free_slot_wakes_nobody(case: Case) -> None:
    case.free = SLOTS - 1
    case.claim(left=False)
    assert not case.end_one()
    assert case.turns.pause() == math.inf


def test_an_idle_runner_claims_at_once_what_is_announced(case: Case) -> None:
    case.claim(left=False)
    case.turns.due_in(0)
    assert case.turns.pause() == 0


def test_what_is_due_soonest_counts(case: Case) -> None:
    case.claim(left=False)
    for seconds in (5, 2, 3):
        case.turns.due_in(seconds)
    assert case.turns.pause() == 2


def test_what_is_announced_while_a_claim_is_under_way_is_claimed_next(case: Case) -> None:
    case.turns.begin()
    case.turns.due_in(0)
    case.turns.end(hungry=False, seconds=1)
    assert case.turns.pause() == 0


def test_a_busy_runner_waits_for_more_slots_but_not_for_long(case: Case, clock: Clock) -> None:
    case.free = 0
    case.claim(left=True)
    assert case.turns.pause() == math.inf
    assert case.end_one()
    assert case.turns.pause() == pytest.approx(LINGER_SECONDS)
    assert not case.end_one()
    clock.now += SOON
    assert case.turns.pause() == 0


def test_a_busy_runner_claims_when_half_of_the_slots_are_free(case: Case) -> None:
    case.free = 0
    case.claim(left=True)
    assert [case.end_one() for _ in range(SLOTS // 2)] == [True, False, False, True]
    assert case.turns.pause() == 0


def test_a_slot_is_idle_no_longer_than_the_last_claim_took(case: Case) -> None:
    case.free = 0
    case.claim(left=True, seconds=0.001)
    case.end_one()
    assert case.turns.pause() == pytest.approx(0.001)


@pytest.mark.parametrize("when", ["before the end of the claim", "after it"])
def test_a_slot_that_becomes_free_while_a_claim_ends_is_not_forgotten(
    case: Case, when: str
) -> None:
    case.free = 0
    case.turns.begin()
    if when == "before the end of the claim":
        case.end_one()
    case.turns.end(hungry=True, seconds=1)
    if when == "after it":
        case.end_one()
    assert case.turns.pause() <= SOON


def test_what_is_announced_while_no_slot_is_free_is_claimed_with_the_next_one(case: Case) -> None:
    case.claim(left=False)
    case.free = 0
    case.turns.due_in(0)
    assert case.turns.pause() == math.inf
    assert case.end_one()
    assert case.turns.pause() <= SOON


def test_a_slot_that_becomes_free_just_when_none_was_is_seen(clock: Clock) -> None:
    answers = iter([0, 1, 1, 1])
    turns = Turns(SLOTS, lambda: next(answers))
    turns.begin()
    turns.freed()
    turns.end(hungry=False, seconds=1)
    assert turns.pause() <= SOON


def test_who_waits_for_another_slot_does_not_claim_again_for_those_that_are_free(
    case: Case,
) -> None:
    # As where a handler's own limit leaves slots free.
    case.free = SLOTS - 1
    case.claim(left=True)
    assert case.turns.pause() == math.inf
    assert case.end_one()
    assert case.turns.pause() == 0


def test_who_is_called_in_vain_waits_a_little_and_longer_each_time(
    case: Case, clock: Clock
) -> None:
    pauses = []
    for _ in range(8):
        case.turns.begin()
        case.turns.announced()
        case.turns.end(hungry=False, seconds=1, told=True, found=False)
        pauses.append(case.turns.pause())
        case.turns.announced()
        assert case.turns.pause() == pauses[-1]
        clock.now += pauses[-1]
    assert pauses[:3] == pytest.approx([IN_VAIN_SECONDS * factor for factor in (1, 2, 4)])
    assert pauses[-1] == pytest.approx(LONGEST_IN_VAIN_SECONDS)
    # A poll that finds nothing says nothing about announcements.
    case.turns.end(hungry=False, seconds=1, told=False, found=False)
    case.turns.announced()
    assert case.turns.pause() == 0
    case.turns.end(hungry=False, seconds=1, told=True, found=True)
    case.turns.begin()
    case.turns.announced()
    assert case.turns.pause() == 0
