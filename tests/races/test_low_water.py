"""What is written while others look from where claims may start: nothing is passed over."""

import time
from datetime import timedelta

import pytest
from psycopg import Rollback

from tests.races.sessions import Session
from tests.waiting import wait_until

# Looks see nothing of the last second.
UNSEEN_SECONDS = 1.1
SECOND = timedelta(seconds=1)
LOOK = "select rdq._raise_low_water('{q}', worth => %s)"
MARK = "select {} from rdq.low_water where queue = 'q'"


def look(session: Session, worth: str = "0") -> None:
    session.execute(LOOK, worth)


def look_again_and_again(session: Session) -> None:
    for _ in range(3):
        look(session)
        time.sleep(UNSEEN_SECONDS)
    look(session)


def marked(session: Session, condition: str) -> bool:
    return bool(session.value(MARK.format(condition)))


def test_a_mark_rises_while_nothing_waits(first: Session) -> None:
    look(first)
    assert marked(first, "(due_from, expires_from) = ('-infinity', '-infinity')")

    def has_risen() -> bool:
        seen = first.value(MARK.format("looked_at - interval '1 second'"))
        time.sleep(UNSEEN_SECONDS)
        look(first)
        return marked(first, f"due_from = '{seen}' and expires_from = '{seen}'")

    # A look raises nothing that meets a transaction of the one before, in whichever database.
    wait_until(has_risen)


def test_a_mark_stays_at_the_oldest_that_waits_and_that_is_held(first: Session) -> None:
    first.submit_many([{}] * 2)
    [claim] = first.claim(lease="100 milliseconds")
    time.sleep(UNSEEN_SECONDS)

    def is_at_the_oldest() -> bool:
        look(first)
        return marked(
            first,
            "due_from = (select due_at from rdq.due)"
            " and expires_from = (select expires_at from rdq.lease)",
        )

    wait_until(is_at_the_oldest)
    assert (claim.task_id, "PENDING") in first.reclaim()
    assert len(first.claim(10)) == 2


def test_a_ticket_is_found_however_late_it_is_committed(first: Session, second: Session) -> None:
    with first.transaction():
        task = first.submit()
        look_again_and_again(second)
        assert second.claim() == []
    look(second)
    assert second.claim_one().task_id == task


def test_a_lease_is_found_however_late_it_is_committed(first: Session, second: Session) -> None:
    task = first.submit()
    with first.transaction():
        first.claim(lease="100 milliseconds")
        look_again_and_again(second)
        assert second.reclaim() == []
    look(second)
    assert second.reclaim() == [(task, "PENDING")]


@pytest.mark.parametrize(
    "submit",
    [
        "rdq.submit('q', 'h', 'x'::text, run_at => now() - interval '1 day')",
        "rdq.submit('q', 'h', 'x'::text, run_at => now() - interval '1 day', dedupe_key => 'k')",
        """
        rdq.submit_many('q', '[{"handler": "h", "payload": "x", "run_at": "2020-01-01 00:00Z"}]')
        """,
    ],
    ids=["one", "one with a key", "many"],
)
def test_a_start_in_the_past_is_now(first: Session, submit: str) -> None:
    look_again_and_again(first)
    task = first.value(f"select {submit}")
    assert first.value("select due_at > now() - interval '1 hour' from rdq.due")
    assert first.value("select rdq.next_due_at('{q}') = due_at from rdq.due")
    assert first.claim_one().task_id == task


def test_a_submit_that_waited_for_its_key_is_due_when_it_is_written(
    first: Session, second: Session
) -> None:
    with first.transaction():
        first.submit("key")
        waiting = second.start(second.submit, "key")
        waiting.wait_until_blocked_by(first)
        time.sleep(2 * UNSEEN_SECONDS)
        end = first.value("select clock_timestamp()")
        raise Rollback
    task = waiting.result()
    assert second.value("select due_at from rdq.due where task_id = %s", task) > end - SECOND
    assert second.claim_one().task_id == task


@pytest.mark.parametrize("when", ["looked_at + interval '1 hour'", "looked_at - interval '61 s'"])
def test_a_mark_of_another_time_does_not_count(first: Session, when: str) -> None:
    look(first)
    task = first.submit()
    first.execute(
        "update rdq.low_water set due_from = 'infinity', expires_from = 'infinity',"
        f" looked_at = {when}"
    )
    assert first.value("select rdq.next_due_at('{q}') <= now()")
    claim = first.claim_one()
    assert claim.task_id == task
    first.expire_leases()
    assert first.reclaim() == [(task, "PENDING")]


def test_what_a_mark_hides_is_found_within_a_minute(first: Session) -> None:
    look(first)
    task = first.submit()
    first.execute("update rdq.low_water set due_from = 'infinity'")
    assert first.claim() == []
    first.execute("update rdq.low_water set bottom_at = now() - interval '61 seconds'")
    look(first)
    assert first.claim_one().task_id == task


def test_a_mark_goes_when_it_spares_nothing(first: Session) -> None:
    look(first)
    first.execute("update rdq.low_water set bottom_at = now() - interval '61 seconds'")
    look(first, worth="1 minute")
    assert first.rows("select from rdq.low_water") == []
    look(first, worth="1 minute")
    assert first.rows("select from rdq.low_water") == []


def test_nobody_waits_for_a_look_that_hangs(first: Session, second: Session) -> None:
    with first.transaction():
        look(first)
        look(second)
        assert second.rows("select from rdq.low_water") == []
    task = first.submit()
    assert second.claim_one().task_id == task
