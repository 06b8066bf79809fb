"""Bulk redrives among others: each dead letter goes back once, whoever redrives, or is killed.

RDQ_TEST_REDRIVE_ROWS says how many the large one sends; 20,000 by default.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Barrier, Event
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest

from tests.races.conftest import OpenSession
from tests.races.sessions import Call, Session
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until

ROWS: Final = int(os.environ.get("RDQ_TEST_REDRIVE_ROWS", "20000"))
BATCH: Final = 1000 if ROWS < 100_000 else 10_000
AT_ONCE: Final = 10_000
"""What the call that begins a redrive sends itself."""

Run = Callable[..., RunnerProcess]


@pytest.fixture
def run(database: str, tmp_path: Path) -> Iterator[Run]:
    started: list[RunnerProcess] = []

    def start_process(*options: str) -> RunnerProcess:
        started.append(RunnerProcess(database, tmp_path, "--poll-interval=0.2", *options))
        return started[-1]

    yield start_process
    for runner in started:
        runner.kill()


# One transition, one row of the audit


def test_of_bulk_single_and_double_redrives_at_once_each_dead_letter_gets_one(
    first: Session, open_session: OpenSession
) -> None:
    task_ids = die(first, 300)
    together = Barrier(5)

    def redrive_each(session: Session, seed: int) -> int:
        """Return how many were put back; all others were refused for their state."""
        order = Random(seed).sample(task_ids, len(task_ids))
        together.wait()
        done = 0
        for task_id in order:
            done += redriven(session, task_id)
        return done

    # The first two click twice: in the same order.
    singles = [
        session.start(redrive_each, session, seed)
        for session, seed in ((open_session(), seed) for seed in (1, 1, 2, 3))
    ]
    bulks = [open_session(), open_session(), open_session()]
    together.wait()
    wait_until(lambda: first.value("select count(*) from rdq.due") > 20)
    sent = [
        bulk.start(bulk.redrive_where, handler).result()[0]
        for bulk, handler in zip(bulks, (None, "h", None), strict=True)
    ]
    alone = [single.result() for single in singles]

    assert sum(sent) + sum(alone) == 300
    assert sum(alone) > 20
    assert lives(first) == {1: 300}
    # Each has one row, by the single redrive or by the bulk one that sent it.
    assert first.value("select count(*) from rdq.audit where action = 'redrive'") == sum(alone)
    assert first.value("select count(*) from rdq.redriven") == sum(sent)
    assert (
        first.value("""
        select count(distinct task_id)
        from (
          select task_id from rdq.audit where action = 'redrive'
          union all
          select task_id from rdq.redriven
        ) t
        """)
        == 300
    )
    assert first.rows("select count(*) from rdq.audit where action = 'redrive_where'") == [(3,)]
    assert first.rows("select distinct matched - sent - skipped, state from rdq.redrives") == [
        (0, "DONE")
    ]


# Runners that are killed


@pytest.mark.slow
def test_a_redrive_whose_runners_are_killed_half_way_is_carried_on_by_another(
    first: Session, run: Run
) -> None:
    first.execute("select rdq.alter_queue('q', '{\"lease\": 2}')")
    die(first, 600, handler="ok")
    # A step sends what is due within ten seconds, however late it comes: each a sixth of them.
    redrive_id = begin(first, per_second=10)
    pair = [run(), run()]
    while pair:
        wait_until_sent(first, redrive_id, sent(first, redrive_id) + 5)
        pair.pop().kill()
    assert sent(first, redrive_id) < 600
    an_hour_passes(first)
    run()

    def is_done_when_hours_pass() -> bool:
        first.execute(
            "update rdq.redrive_run set next_due_at = next_due_at - interval '1 hour'"
            " where state = 'RUNNING'"
        )
        return state(first, redrive_id) == "DONE"

    wait_until(is_done_when_hours_pass)
    first.make_due()
    status = "select undecided from rdq.redrive_status(%s)"
    wait_until(lambda: first.value(status, redrive_id) == 0)

    assert counts(first, redrive_id) == ("DONE", 600, 600, 600, 0, 0)
    assert first.rows("""
        select count(*), max(life), count(*) filter (where outcome = 'SUCCEEDED' and life = 1)
        from (select distinct on (task_id) * from rdq.attempt order by task_id, attempt_no desc) a
        """) == [(600, 1, 600)]
    assert actions(first, redrive_id) == {"redrive_where": 1, "finish_redrive": 1}


def test_what_a_killed_runner_was_sending_is_sent_once(
    first: Session, second: Session, open_session: OpenSession, run: Run
) -> None:
    die(first, 40)
    first.leave_a_redrive_to_the_sweeps()
    holder = open_session()
    with holder.transaction():
        holder.execute("lock table rdq.redriven in share mode")
        runner = run()
        waits = "select count(*) from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
        wait_until(lambda: second.value(waits, holder.pid) == 1)
        runner.kill()
        # Its step is still under way in the server; nobody begins it a second time.
        assert second.tick() == (0, 0, 0, 0)
        assert lives(second) == {}
    wait_until(lambda: bool(second.tick()) and lives(second) == {1: 40})
    second.tick()
    [redrive_id] = second.rows("select redrive_id from rdq.redrives")[0]
    assert counts(second, redrive_id)[:3] == ("DONE", 40, 40)
    assert actions(second, redrive_id) == {"finish_redrive": 1}


# Neither more nor less than was shown


def test_a_redrive_sends_exactly_what_its_preview_showed(first: Session, second: Session) -> None:
    shown = die(first, 700)
    until = first.value("select clock_timestamp()")
    preview = "select matched from rdq.redrive_where('q', until => %s, dry_run => true)"
    assert first.value(preview, until) == 700
    die(second, 500)
    redrive_id = begin(first, until=until)
    assert counts(first, redrive_id)[:3] == ("DONE", 700, 700)
    assert lives(first) == {1: 700}
    assert {row[0] for row in first.rows("select task_id from rdq.due")} == {*shown}
    assert first.value("select count(*) from rdq.dead") == 500


def test_no_step_of_a_redrive_takes_what_died_after_it_began(
    first: Session, second: Session
) -> None:
    before = die(first, 100)
    first.leave_a_redrive_to_the_sweeps()
    late = []
    while first.value("select count(*) from rdq.redrives where state = 'RUNNING'"):
        late += die(second, 20)
        first.tick(30)
    assert len(late) >= 80
    assert {row[0] for row in first.rows("select task_id from rdq.due")} == {*before}
    assert {row[0] for row in first.rows("select task_id from rdq.dead")} == {*late}
    redrive_id = first.value("select redrive_id from rdq.redrives")
    assert counts(first, redrive_id) == ("DONE", 100, 100, 0, 0, 0)


# Many


@pytest.mark.timeout(60 + ROWS // 500)
def test_a_large_redrive_goes_on_in_committed_batches_and_can_be_stopped_and_resumed(
    first: Session, second: Session
) -> None:
    die(first, ROWS)
    second.execute("set statement_timeout = '5s'")
    redrive_id = begin(second)
    done = AT_ONCE
    assert counts(first, redrive_id)[:3] == ("RUNNING", ROWS, done)
    while done < ROWS:
        # Committed: another session sees it.
        assert lives(first) == {1: done}
        assert sent(first, redrive_id) == done
        if done == AT_ONCE + 2 * BATCH:
            second.execute("select rdq.pause_redrive(%s)", redrive_id)
            assert [second.tick(BATCH)[2] for _ in range(3)] == [0, 0, 0]
            assert lives(first) == {1: done}
            second.execute("select rdq.resume_redrive(%s)", redrive_id)
        assert second.tick(BATCH)[2] == BATCH
        done += BATCH
    assert second.tick(BATCH)[2] == 0
    assert counts(first, redrive_id)[:3] == ("DONE", ROWS, ROWS)
    assert first.value("select count(*) from rdq.dead") == 0
    first.execute("analyze")  # for the look at all of them that ends a test


def test_what_a_cancelled_redrive_has_not_sent_can_be_sent_by_another(first: Session) -> None:
    die(first, ROWS)
    first.execute("set statement_timeout = '5s'")
    cancelled = begin(first)
    first.tick(BATCH)
    first.execute("select rdq.cancel_redrive(%s)", cancelled)
    assert first.tick(BATCH)[2] == 0
    left = ROWS - AT_ONCE - BATCH
    assert first.value("select count(*) from rdq.dead") == left
    other = begin(first)
    while state(first, other) == "RUNNING":
        first.tick(BATCH)
    assert counts(first, other)[:3] == ("DONE", left, left)
    assert counts(first, cancelled)[:3] == ("CANCELLED", ROWS, ROWS - left)
    assert lives(first) == {1: ROWS}
    first.execute("analyze")


# An operator's word, among sweeps


def test_after_a_pause_or_a_cancel_no_sweep_sends(
    first: Session, open_session: OpenSession
) -> None:
    die(first, 3000)
    first.leave_a_redrive_to_the_sweeps()
    redrive_id = first.value("select redrive_id from rdq.redrives")
    with sweeping(open_session, 3) as sweeps:
        for _ in range(5):
            wait_until_sent(first, redrive_id, sent(first, redrive_id) + 5)
            first.execute("select rdq.pause_redrive(%s)", redrive_id)
            assert_nothing_is_sent(first, redrive_id, sweeps)
            first.execute("select rdq.resume_redrive(%s)", redrive_id)
        first.execute("select rdq.cancel_redrive(%s)", redrive_id)
        assert_nothing_is_sent(first, redrive_id, sweeps)
    assert 0 < sent(first, redrive_id) < 3000
    assert actions(first, redrive_id) == {
        "pause_redrive": 5,
        "resume_redrive": 5,
        "cancel_redrive": 1,
    }


def test_a_pause_waits_for_the_step_that_is_under_way(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    die(first, 30)
    first.leave_a_redrive_to_the_sweeps()
    redrive_id = first.value("select redrive_id from rdq.redrives")
    holder = open_session()
    with holder.transaction():
        holder.execute("lock table rdq.redriven in share mode")
        sweep = first.start(first.tick, 20)
        sweep.wait_until_blocked_by(holder)
        pause = second.start(second.execute, "select rdq.pause_redrive(%s)", redrive_id)
        pause.wait_until_blocked_by(first)
    assert sweep.result()[2] == 20
    pause.result()
    assert counts(second, redrive_id)[:3] == ("PAUSED", 30, 20)
    assert first.tick() == (0, 0, 0, 0)
    assert lives(second) == {1: 20}


def test_a_redrive_is_stopped_beside_a_forgotten_purge_of_its_next_letter(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    # https://github.com/riverqueue/river/issues/1059
    task_ids = die(first, 30)
    first.leave_a_redrive_to_the_sweeps()
    redrive_id = first.value("select redrive_id from rdq.redrives")
    forgotten = open_session()
    second.execute("set statement_timeout = '2s'")
    with forgotten.transaction():
        forgotten.execute("select rdq.purge(%s)", task_ids[0])
        assert second.tick(20)[2] == 19
        for call in ("pause_redrive", "resume_redrive", "pause_redrive", "cancel_redrive"):
            second.execute(f"select rdq.{call}(%s)", redrive_id)
    assert counts(second, redrive_id)[:3] == ("CANCELLED", 30, 19)
    assert second.value("select count(*) from rdq.redrive_passed") == 0


def test_a_forgotten_purge_holds_up_its_own_letter_only(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    task_ids = die(first, 30)
    forgotten = open_session()
    with forgotten.transaction():
        forgotten.execute("select rdq.purge(%s)", task_ids[0])
        redrive_id = begin(second)
        assert counts(second, redrive_id)[:3] == ("RUNNING", 30, 29)
        for _ in range(3):
            assert second.tick() == (0, 0, 0, 0)
    second.tick()
    assert counts(second, redrive_id) == ("DONE", 30, 29, 0, 0, 1)


def test_of_two_operators_who_pause_one_is_told_that_it_is_paused(
    first: Session, second: Session
) -> None:
    die(first, 5)
    first.leave_a_redrive_to_the_sweeps()
    redrive_id = first.value("select redrive_id from rdq.redrives")
    with first.transaction():
        first.execute("select rdq.pause_redrive(%s)", redrive_id)
        pause = second.start(second.execute, "select rdq.pause_redrive(%s)", redrive_id)
        pause.wait_until_blocked_by(first)
    with pytest.raises(psycopg.Error, match="is PAUSED; nothing was changed"):
        pause.result()
    assert actions(first, redrive_id) == {"pause_redrive": 1}


# No herd


def test_a_pace_does_not_make_up_for_a_pause(first: Session) -> None:
    die(first, 500)
    redrive_id = begin(first, per_second=10)
    ahead = sent(first, redrive_id)
    assert ahead <= 10 * 10 + 1
    first.execute("select rdq.pause_redrive(%s)", redrive_id)
    an_hour_passes(first)
    first.execute("select rdq.resume_redrive(%s)", redrive_id)
    assert first.tick()[2] > 0
    # What was sent before the pause is due by now; no more than ten seconds' worth.
    assert (
        first.value("select count(*) from rdq.due where due_at <= clock_timestamp()") <= ahead + 1
    )
    assert busiest_second(first, "due_at > clock_timestamp()") <= 11


def test_a_redrive_that_no_sweep_has_carried_on_for_an_hour_keeps_its_pace(first: Session) -> None:
    die(first, 500)
    redrive_id = begin(first, per_second=10)
    ahead = sent(first, redrive_id)
    an_hour_passes(first)
    first.tick()
    first.tick()
    assert (
        first.value("select count(*) from rdq.due where due_at <= clock_timestamp()") <= ahead + 1
    )
    assert busiest_second(first, "due_at > clock_timestamp()") <= 11
    assert counts(first, redrive_id)[0] == "RUNNING"


def redriven(session: Session, task_id: UUID) -> bool:
    """Redrive a task; return False if it was refused, since the task is not dead."""
    try:
        session.redrive(task_id)
    except psycopg.Error as error:
        if error.sqlstate != "RD004":
            raise
        return False
    return True


def die(session: Session, count: int, handler: str = "h") -> list[UUID]:
    """Submit tasks with the error that kills them; return them."""
    rows = session.rows(
        """
        select rdq.submit_many('q', jsonb_agg(jsonb_build_object(
          'handler', %s::text, 'payload', 'x',
          'error', '{"type": "Error", "message": "no", "class": "PERMANENT"}'::jsonb
        )))
        from generate_series(1, %s) n
        group by n / 5000
        """,
        handler,
        count,
    )
    return [task_id for (task_id,) in rows]


def begin(session: Session, **how: object) -> UUID:
    """Begin a redrive of all dead letters of the queue."""
    given = "".join(f", {name} => %s" for name in how)
    query = f"select redrive_id from rdq.redrive_where('q'{given})"
    return UUID(str(session.value(query, *how.values())))


@contextmanager
def sweeping(open_session: OpenSession, count: int) -> Iterator[Counter[int]]:
    """Let sessions sweep, a task at a time, until the block ends; give how often each did."""
    stopping = Event()
    sweeps: Counter[int] = Counter(dict.fromkeys(range(count), 0))

    def sweep(session: Session, number: int) -> None:
        while not stopping.is_set():
            session.tick(1)
            sweeps[number] += 1

    calls: list[Call[None]] = []
    for number in range(count):
        session = open_session()
        calls.append(session.start(sweep, session, number))
    try:
        yield sweeps
    finally:
        stopping.set()
        for call in calls:
            call.result()


def assert_nothing_is_sent(session: Session, redrive_id: UUID, sweeps: Counter[int]) -> None:
    """Check that what is sent stays the same while each session sweeps some more, and counts."""
    before = counts(session, redrive_id)
    for claim in session.claim(5):
        session.complete(claim)
    seen = {number: count + 5 for number, count in sweeps.items()}
    wait_until(lambda: all(sweeps[number] >= count for number, count in seen.items()))
    state, matched, sent, succeeded, died, skipped = counts(session, redrive_id)
    assert (state, matched, sent, died, skipped) == (*before[:3], *before[4:])
    assert succeeded == before[3] + 5
    assert session.value("select count(*) from rdq.dead where life = 0") == matched - sent


def an_hour_passes(session: Session) -> None:
    """Move what the tables say of times an hour back."""
    for table, columns in {
        "redrive_run": ("began_at", "next_due_at", "cursor_at"),
        "due": ("due_at",),
        "low_water": ("due_from", "expires_from", "looked_at", "bottom_at"),
        "dead": ("dead_at",),
    }.items():
        moves = ", ".join(f"{column} = {column} - interval '1 hour'" for column in columns)
        session.execute(f"update rdq.{table} set {moves}")


def busiest_second(session: Session, condition: str) -> int:
    """Return how many are due within one second, where they are the most."""
    return int(
        session.value(f"""
        select max(count)
        from (
          select count(*) over (order by due_at range between current row and '1 second' following)
          from rdq.due
          where {condition}
        ) d
        """)
    )


def lives(session: Session) -> dict[int, int]:
    """Return how many tasks wait, by how often they were redriven."""
    return dict(session.rows("select life, count(*) from rdq.due group by life"))


def sent(session: Session, redrive_id: UUID) -> int:
    return int(session.value("select sent from rdq.redrive_status(%s)", redrive_id))


def wait_until_sent(session: Session, redrive_id: UUID, count: int) -> None:
    """Wait until so many are sent, or more."""
    wait_until(lambda: sent(session, redrive_id) >= count)


def state(session: Session, redrive_id: UUID) -> str:
    return str(session.value("select state from rdq.redrive_status(%s)", redrive_id))


def counts(session: Session, redrive_id: UUID) -> tuple[Any, ...]:
    """Return state, matched, sent, succeeded, died and skipped."""
    [row] = session.rows(
        "select state, matched, sent, succeeded, died, skipped from rdq.redrive_status(%s)",
        redrive_id,
    )
    return row


def actions(session: Session, redrive_id: UUID) -> dict[str, int]:
    """Return how many rows the audit has of a redrive, by what was done."""
    query = "select action, count(*) from rdq.audit where redrive_id = %s group by action"
    return dict(session.rows(query, redrive_id))
