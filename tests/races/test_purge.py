"""A purge meets whoever else wants the task: one wins, and nothing is left of what is gone.

RDQ_TEST_PURGE_ROWS says how many dead letters the large one deletes; 20,000 by default.
"""

import os
from datetime import timedelta
from uuid import UUID

import pytest
from psycopg import Rollback

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session, refused
from tests.waiting import wait_until

ROWS = int(os.environ.get("RDQ_TEST_PURGE_ROWS", "20000"))
BATCH = 1000 if ROWS < 100_000 else 10_000


def dead_letters(session: Session, count: int) -> list[UUID]:
    task_ids = session.submit_many([{}] * count)
    session.bury(*task_ids)
    return task_ids


def cancelled_in_flight(session: Session) -> Claim:
    """Make a dead letter whose worker does not know yet that it has lost its claim."""
    session.submit()
    claim = session.claim_one()
    session.cancel(claim.task_id)
    return claim


def test_a_purge_of_a_task_whose_completion_is_not_committed_is_refused(
    first: Session, second: Session
) -> None:
    first.submit()
    claim = first.claim_one()
    with first.transaction():
        assert first.complete(claim)
        with refused("RD004"):
            second.purge(claim.task_id)
    second.purge(claim.task_id)
    assert nothing_is_left(second)


def test_a_purge_of_a_task_whose_death_is_not_committed_is_refused(
    first: Session, second: Session
) -> None:
    first.submit()
    claim = first.claim_one()
    with first.transaction():
        assert first.fail(claim, "PERMANENT") == "DEAD"
        with refused("RD004"):
            second.purge(claim.task_id)
    second.purge(claim.task_id)
    assert nothing_is_left(second)


def test_a_late_report_does_not_wait_for_a_purge_and_leaves_nothing_behind(
    first: Session, second: Session
) -> None:
    claim = cancelled_in_flight(first)
    with first.transaction():
        first.purge(claim.task_id)
        assert not second.complete(claim)
    assert nothing_is_left(second)
    [(task_id, _, stale)] = second.report([claim], [{"type": "Error"}])
    assert (task_id, stale) == (claim.task_id, True)
    assert nothing_is_left(second)


def test_a_purge_waits_for_a_late_report_and_takes_it_along(
    first: Session, second: Session
) -> None:
    claim = cancelled_in_flight(first)
    with first.transaction():
        assert not first.complete(claim)
        purge = second.start(second.purge, claim.task_id)
        purge.wait_until_blocked_by(first)
    purge.result()
    assert nothing_is_left(second)


def test_a_claim_does_not_wait_for_a_purge(first: Session, second: Session) -> None:
    [dead] = dead_letters(first, 1)
    waiting = first.submit()
    with first.transaction():
        first.purge(dead)
        assert [claim.task_id for claim in second.claim(10)] == [waiting]


def test_a_purge_that_is_rolled_back_leaves_the_task_to_a_redrive(
    first: Session, second: Session
) -> None:
    [task_id] = dead_letters(first, 1)
    with first.transaction():
        first.purge(task_id)
        redrive = second.start(second.redrive, task_id)
        redrive.wait_until_blocked_by(first)
        raise Rollback
    assert redrive.result() == "PENDING"
    assert purges(second) == 0


def test_an_edit_does_not_outlive_a_purge_that_was_first(first: Session, second: Session) -> None:
    [task_id] = dead_letters(first, 1)
    query = "select status from rdq.redrive(%s, 'edited')"
    with first.transaction():
        first.purge(task_id)
        redrive = second.start(second.value, query, task_id)
        redrive.wait_until_blocked_by(first)
    with refused("RD003"):
        redrive.result()
    assert nothing_is_left(second)
    assert second.value("select count(*) from rdq.audit where action = 'redrive'") == 0


def test_two_bulk_purges_delete_and_count_each_dead_letter_once(
    first: Session, second: Session
) -> None:
    dead_letters(first, 5)
    with first.transaction():
        assert first.purge_where(max_tasks=3) == 3
        assert second.purge_where() == 2
    assert second.purge_where() == 0
    assert purges(second) == 5
    assert nothing_is_left(second)


def test_a_bulk_purge_leaves_what_dies_while_it_waits(first: Session, second: Session) -> None:
    # More than one statement of the purge deletes: a later one sees what died while it waited.
    write_dead(first, 600)
    low, high = (
        first.value(f"select {end}(task_id::text)::uuid from rdq.dead") for end in ("min", "max")
    )
    with first.transaction():
        first.execute("select from rdq.attempt where task_id = %s for update", low)
        purge = second.start(second.purge_where)
        purge.wait_until_blocked_by(first)
        # Another one lives and dies once more, after the purge began.
        first.redrive(high)
        for claim in first.claim(2):
            assert first.fail(claim, "PERMANENT") == "DEAD"
    assert purge.result() == 599
    assert (second.status(low), second.status(high)) == (None, "DEAD")


def test_a_bulk_purge_passes_over_what_is_locked(first: Session, second: Session) -> None:
    locked, *_ = dead_letters(first, 5)
    query = "select purged, remaining from rdq.purge_where('q')"
    with first.transaction():
        first.execute("select from rdq.dead where task_id = %s for update", locked)
        assert second.rows(query) == [(4, 1)]
    assert second.rows(query) == [(1, 0)]
    assert nothing_is_left(second)


def test_a_bulk_purge_takes_later_what_one_that_was_rolled_back_had_locked(
    first: Session, second: Session
) -> None:
    dead_letters(first, 5)
    with first.transaction():
        assert first.purge_where(max_tasks=3) == 3
        assert second.purge_where() == 2
        raise Rollback
    assert second.purge_where() == 3
    assert purges(second) == 5
    assert nothing_is_left(second)


def test_a_purge_that_waited_for_a_whole_life_leaves_what_died_again(
    first: Session, second: Session
) -> None:
    [task_id] = dead_letters(first, 1)
    with first.transaction():
        first.redrive(task_id)
        purge = second.start(second.purge, task_id)
        purge.wait_until_blocked_by(first)
        assert first.fail(first.claim_one(), "PERMANENT") == "DEAD"
    with refused("RD004"):
        purge.result()
    assert second.status(task_id) == "DEAD"
    assert purges(second) == 0


@pytest.mark.parametrize("setting", ["keep_dead", "keep_succeeded"])
def test_retention_passes_by_what_is_being_purged(
    first: Session, second: Session, setting: str
) -> None:
    first.execute(f"select rdq.alter_queue('q', '{{\"{setting}\": 0}}')")
    task_id = first.submit()
    if setting == "keep_dead":
        first.bury(task_id)
    else:
        first.complete(first.claim_one())
    with first.transaction():
        first.purge(task_id)
        assert second.tick()[3] == 0
    assert second.tick()[3] == 0
    assert nothing_is_left(second)


def test_a_redrive_of_what_retention_is_deleting_finds_it_gone(
    first: Session, second: Session
) -> None:
    [task_id] = dead_letters(first, 1)
    first.execute("select rdq.alter_queue('q', '{\"keep_dead\": 0}')")
    with first.transaction():
        assert first.tick()[3] == 1
        redrive = second.start(second.redrive, task_id)
        redrive.wait_until_blocked_by(first)
    with refused("RD003"):
        redrive.result()
    assert nothing_is_left(second)


def test_a_large_purge_goes_on_in_committed_batches_and_can_be_stopped(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    write_dead(first, ROWS)
    second.execute("set statement_timeout = '5s'")
    left = ROWS
    for _ in range(ROWS // BATCH // 2):
        left -= second.purge_where(BATCH)
        # Committed: another session sees it.
        assert first.value("select count(*) from rdq.dead") == left

    # Killed in the middle of a batch: that batch has done nothing.
    with first.transaction():
        first.execute("lock table rdq.task in share mode")
        purge = second.start(second.purge_where, BATCH)
        purge.wait_until_blocked_by(first)
        first.execute("select pg_terminate_backend(%s)", second.pid)
        with refused("57P01"):
            purge.result()
    assert first.value("select count(*) from rdq.dead") == left

    third = open_session()
    third.execute("set statement_timeout = '5s'")
    query = "select purged, remaining from rdq.purge_where('q', max_tasks => %s)"
    while left:
        [(purged, remaining)] = third.rows(query, BATCH)
        assert (purged, remaining) == (min(BATCH, left), left - min(BATCH, left))
        left = remaining
    assert nothing_is_left(first)
    assert purges(first) == ROWS


def test_a_bulk_purge_that_had_to_wait_stops_before_its_statement_times_out(
    first: Session, second: Session
) -> None:
    write_dead(first, 1200)
    lowest = first.value("select min(task_id::text)::uuid from rdq.dead")
    second.execute("set statement_timeout = '6s'")
    with first.transaction():
        first.execute("select from rdq.attempt where task_id = %s for update", lowest)
        purge = second.start(second.purge_where)
        purge.wait_until_blocked_by(first)
        running = "select clock_timestamp() - query_start from pg_stat_activity where pid = %s"
        wait_until(lambda: first.value(running, second.pid) > timedelta(seconds=3))
    purged = purge.result()
    assert 0 < purged < 1200
    assert purges(second) == purged
    assert second.purge_where() == 1200 - purged


def test_retention_of_a_backlog_goes_on_in_committed_batches(first: Session) -> None:
    write_dead(first, ROWS)
    first.execute("select rdq.alter_queue('q', '{\"keep_dead\": 0}')")
    first.execute("set statement_timeout = '5s'")
    purged: list[int] = []
    while not purged or purged[-1]:
        purged.append(first.tick(BATCH)[3])
    assert purged == [BATCH] * (ROWS // BATCH) + [0]
    assert nothing_is_left(first)
    assert first.rows("""
        select count(*), sum(affected) from rdq.audit where action = 'retention' and queue = 'q'
        """) == [(ROWS // BATCH, ROWS)]


def write_dead(session: Session, count: int) -> None:
    """Write many dead letters, of three attempts each, as if they had died one by one."""
    session.execute(
        """
        with fresh as (
          insert into rdq.task (id, queue, handler, payload, content_type, headers, created_at)
          select gen_random_uuid(), 'q', 'h', 'x', 'text/plain', '{}', now()
          from generate_series(1, %s)
          returning id
        ),
        attempted as (
          insert into rdq.attempt (
            task_id, attempt_no, life, queue, outcome, error_class, started_at, finished_at
          )
          select f.id, n, 0, 'q', 'FAILED', 'TRANSIENT', now(), now()
          from fresh f
          cross join generate_series(1, 3) n
        )
        insert into rdq.dead (task_id, queue, handler, life, dead_at, reason, fingerprint)
        select f.id, 'q', 'h', 0, now() - n * interval '1 ms', 'EXHAUSTED', 'f'
        from (select id, row_number() over () as n from fresh) f
        """,
        count,
    )


def purges(session: Session) -> int:
    """Return how many tasks the audit says were purged."""
    query = "select coalesce(sum(affected), 0) from rdq.audit where action like 'purge%%'"
    return int(session.value(query))


def nothing_is_left(session: Session) -> bool:
    tables = ("task", "attempt", "due", "lease", "dead", "dedupe")
    return not any(session.value(f"select count(*) from rdq.{table}") for table in tables)
