"""What finished while the database was away is not done again: who comes back tells it first."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from rdq_runner import Handlers, Runner, Task, recovery
from rdq_runner.recovery import GRACE_SECONDS, Recovery, Spare
from rdq_runner.sessions import CONNECT_SECONDS, LONGEST_PAUSE_SECONDS, Database, Session
from rdq_runner.sql import Functions
from tests.runner.conftest import Queue, Start
from tests.runner.networks import Network
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until
from tools.postgres import Server

SLOTS: Final = 4
# How long handlers run: they begin while the database is there, and end while it is away.
WORK_SECONDS: Final = 2.0


class Outage(NamedTuple):
    """How the database goes away, and how it comes back."""

    begin: Callable[[Server, Network], object]
    end: Callable[[Server, Network], object]


OUTAGES: Final = {
    "a fast stop": Outage(lambda s, n: s.stop("fast"), lambda s, n: s.start()),
    "an immediate stop": Outage(lambda s, n: s.stop("immediate"), lambda s, n: s.start()),
    "a network that is silent": Outage(lambda s, n: n.silence(), lambda s, n: n.restore()),
}


def work_through(
    outage: Outage, server: Server, folder: Path, lease_seconds: float, away_seconds: float
) -> list[list[str]]:
    """Have two runners work through an outage; return the outcomes of each task's attempts."""
    with ExitStack() as stack:
        network = stack.enter_context(Network(server.dsn()).running())
        with psycopg.connect(server.dsn(), autocommit=True) as db:
            queue = Queue(db)
            queue.alter(lease=f"{lease_seconds} seconds")
            for _ in range(2):
                runner = RunnerProcess(network.dsn, folder, "--concurrency", str(SLOTS))
                stack.callback(runner.kill)
                wait_until(lambda: runner.has_said("runner starts"))  # noqa: B023
            tasks = [queue.submit("sleep", seconds=WORK_SECONDS) for _ in range(2 * SLOTS)]
            wait_until(lambda: queue.in_flight() == len(tasks))
        outage.begin(server, network)
        time.sleep(away_seconds)
        outage.end(server, network)
        with psycopg.connect(server.dsn(), autocommit=True) as db:
            queue = Queue(db)
            queue.wait_for("SUCCEEDED", *tasks, seconds=90)
            return [queue.outcomes(task) for task in tasks]


@pytest.mark.parametrize("outage", [*OUTAGES.values()], ids=[*OUTAGES])
def test_work_that_finished_during_an_outage_is_not_done_again(
    own_server: Server, tmp_path: Path, outage: Outage
) -> None:
    outcomes = work_through(outage, own_server, tmp_path, lease_seconds=3, away_seconds=7)
    assert outcomes == [["SUCCEEDED"]] * 2 * SLOTS


def test_what_others_hold_is_taken_back_when_they_have_had_the_time_to_say_what_they_know(
    queue: Queue, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "GRACE_SECONDS", 4.0)
    queue.alter(lease="2 seconds")
    with Network(queue.db.info.dsn).running() as network:
        start(dsn=network.dsn)
        queue.wait_for("SUCCEEDED", queue.submit("ok"))
        queue.alter(notify=False)
        network.silence()
        lost = queue.submit("ok")
        queue.db.execute("select rdq.claim('{q}', 'another that has died')")
        expired = "select 1 from rdq.lease where expires_at < clock_timestamp() - interval '1 s'"
        wait_until(lambda: queue.db.execute(expired).fetchone())
        network.restore()
        restored_at = time.monotonic()
        after = queue.submit("ok")
        queue.wait_for("SUCCEEDED", after)
        assert queue.outcomes(lost) == []
        queue.wait_for("SUCCEEDED", lost)
        assert time.monotonic() - restored_at > 3
        assert queue.outcomes(lost) == ["LEASE_EXPIRED", "SUCCEEDED"]


def test_what_ended_before_an_outage_is_taken_back_at_once_after_it(
    queue: Queue, start: Start
) -> None:
    queue.alter(notify=False)
    lost = queue.submit("ok")
    queue.db.execute("select rdq.claim('{q}', 'another that has died', lease => '0.1 s')")
    expired = "select 1 from rdq.lease where expires_at < clock_timestamp() - interval '0.5 s'"
    wait_until(lambda: queue.db.execute(expired).fetchone())
    away = Recovery()
    away.lost()
    away.found()
    spare = away.spare(0.0).interval
    assert spare
    rows = queue.db.execute("select * from rdq.reclaim(10, null, %s)", [spare]).fetchall()
    assert [task for task, _ in rows] == [lost]


def test_the_grace_is_longer_than_a_pause_and_a_connection() -> None:
    assert GRACE_SECONDS > LONGEST_PAUSE_SECONDS + CONNECT_SECONDS


class Clock:
    """A clock that stands still."""

    now = 1000.0

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(recovery, "time", clock)
    return clock


def spared(case: Recovery) -> float | None:
    """Return how many seconds are spared."""
    interval = case.spare(0.0).interval
    return None if interval is None else interval.total_seconds()


def test_leases_are_spared_since_the_last_answer_until_the_grace_is_over(clock: Clock) -> None:
    case = Recovery()
    assert spared(case) is None
    clock.now += 100
    case.found()
    clock.now += 3
    case.lost()
    clock.now += 10
    assert (case.deliver_until, spared(case)) == (math.inf, 13)
    case.found()
    back_at = clock.now
    clock.now += GRACE_SECONDS - 1
    case.found()
    assert (case.deliver_until, spared(case)) == (back_at, 13 + GRACE_SECONDS - 1)
    clock.now += 2
    assert (case.deliver_until, spared(case)) == (None, None)


def test_an_outage_within_the_grace_of_another_is_the_same(clock: Clock) -> None:
    case = Recovery()
    case.lost()
    case.found()
    clock.now += GRACE_SECONDS - 1
    case.lost()
    case.found()
    clock.now += GRACE_SECONDS - 1
    assert spared(case) == 2 * (GRACE_SECONDS - 1)
    clock.now += 2
    case.lost()
    assert spared(case) == GRACE_SECONDS + 1


def test_a_silence_that_ends_in_an_answer_spares_leases_and_holds_nothing_up(clock: Clock) -> None:
    case = Recovery()
    clock.now += 7
    case.found(waited=4)
    assert (case.deliver_until, spared(case)) == (None, 7)
    clock.now += 5
    # A slow server is not away for ever: what ended before its last slow answer is taken back.
    case.found(waited=5)
    assert spared(case) == 5
    clock.now += 5
    # Others have heard of it meanwhile, or nobody has waited.
    case.found()
    clock.now += 0.5
    case.found(waited=5)
    assert spared(case) == 10.5
    clock.now += GRACE_SECONDS
    assert spared(case) is None


def test_a_slow_answer_after_an_outage_is_no_other_one(clock: Clock) -> None:
    case = Recovery()
    case.lost()
    clock.now += 10
    case.found()
    clock.now += 5
    case.found(waited=5)
    assert spared(case) == 15


def test_a_call_that_was_long_on_its_way_spares_what_ended_since_the_last_answer(
    queue: Queue, database: str
) -> None:
    tasks = [queue.submit("ok") for _ in range(2)]
    for seconds in (1, 7):
        queue.db.execute("select rdq.claim('{q}', 'one that has died')")
        ended = "update rdq.lease set expires_at = now() - make_interval(secs => %s)"
        queue.db.execute(f"{ended} where expires_at > now()", [seconds])
    with sessions(database, "one") as (_, [one]), one.functions() as rdq:
        now = rdq.clock()
        late = Spare(None, asked_at=now - 3, answered_at=now - 5)
        assert rdq.tick(10, late).reclaimed == 1
        assert rdq.tick(10, late).reclaimed == 0
        claims = rdq.claim(["q"], "r", 1, None, None, now + 60, Spare(None, now, now - 5))
    assert len(claims) <= 1
    assert sorted(map(queue.outcomes, tasks)) == [["LEASE_EXPIRED"]] * 2


@contextmanager
def sessions(dsn: str, *purposes: str) -> Iterator[tuple[Database, list[Session]]]:
    """Give sessions that have worked once."""
    database = Database(dsn, "test")
    opened = [Session(database, purpose) for purpose in purposes]
    for session in opened:
        use(session)
    yield database, opened
    for session in opened:
        session.close()
    database.close()


def use(session: Session) -> None:
    """Make a call that works."""
    with session.functions() as rdq:
        rdq.clock()


def refuse(session: Session, sqlstate: str) -> None:
    """Make a call that is refused."""
    with pytest.raises(psycopg.Error), session.functions() as rdq:
        rdq._connection.execute(f"do $$ begin raise sqlstate '{sqlstate}'; end $$")


def test_who_finds_the_database_again_wakes_the_others_once(database: str) -> None:
    with sessions(database, "one", "two") as (client, (one, two)):
        woken: list[None] = []
        client.returned = lambda: woken.append(None)
        for session in (one, two):
            refuse(session, "57P01")
        for session in (one, two, one, two):
            use(session)
        assert len(woken) == 2
        assert client.recovery.is_under_way


def test_what_is_no_outage_holds_nothing_up(database: str) -> None:
    with sessions(database, "one") as (client, [one]):
        for sqlstate in ("42501", "40001", "55P03", "22000"):
            refuse(one, sqlstate)
            assert not client.recovery.is_under_way
            use(one)


def test_after_an_outage_a_runner_reports_and_renews_before_it_claims(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[str] = []

    def note(name: str) -> None:
        function = getattr(Functions, name)

        def call(*arguments: Any, **options: Any) -> Any:
            answer = function(*arguments, **options)
            answered.append(name)
            return answer

        monkeypatch.setattr(Functions, name, call)

    for name in ("report", "heartbeat", "claim", "tick"):
        note(name)
    own, ends = Handlers(), {"first": threading.Event(), "second": threading.Event()}

    @own.handler("hold")
    def hold(task: Task) -> None:
        assert ends[task.json()["end"]].wait(60)

    with psycopg.connect(own_server.dsn(), autocommit=True) as db:
        queue = Queue(db)
        queue.alter(lease="1 second")
        first, second = (queue.submit("hold", end=end) for end in ends)
        runner = Runner(own_server.dsn(), queues=["q"], handlers=own, poll_interval=0.1)
        with runner:
            queue.wait_for("IN_FLIGHT", first, second)
            own_server.stop()
            ends["first"].set()
            wait_until(lambda: runner._leases.finished())
            wait_until(lambda: all(lease.lost for lease in runner._leases.running()))
            answered.clear()
            own_server.start()
            wait_until(lambda: {"claim", "tick"} & set(answered))
            ends["second"].set()
            with psycopg.connect(own_server.dsn(), autocommit=True) as again:
                Queue(again).wait_for("SUCCEEDED", first, second)
                for task in (first, second):
                    assert Queue(again).outcomes(task) == ["SUCCEEDED"]
    until_claim = answered[: min(answered.index(n) for n in ("claim", "tick") if n in answered)]
    assert {"report", "heartbeat"} <= set(until_claim)
