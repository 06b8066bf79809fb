"""A redrive meets another redrive, a purge, or a producer of the same dedupe key."""

from uuid import UUID

from psycopg import Rollback

from tests.races.conftest import OpenSession
from tests.races.sessions import Session, refused


def dead_letter(session: Session, key: str | None = None) -> UUID:
    task_id = session.submit(key)
    session.bury(task_id)
    return task_id


def dead_letters(session: Session, count: int) -> list[UUID]:
    task_ids = session.submit_many([{}] * count)
    session.bury(*task_ids)
    return task_ids


def test_of_two_redrives_of_a_task_one_is_told_that_it_is_pending(
    first: Session, second: Session
) -> None:
    task_id = dead_letter(first)
    with first.transaction():
        assert first.redrive(task_id) == "PENDING"
        redrive = second.start(second.redrive, task_id)
        redrive.wait_until_blocked_by(first)
    with refused("RD004"):
        redrive.result()
    assert redrives(second, task_id) == 1
    assert second.value("select count(*) from rdq.audit where action = 'redrive'") == 1


def test_a_redrive_counts_when_the_one_before_it_is_rolled_back(
    first: Session, second: Session
) -> None:
    task_id = dead_letter(first)
    with first.transaction():
        first.redrive(task_id)
        redrive = second.start(second.redrive, task_id)
        redrive.wait_until_blocked_by(first)
        raise Rollback
    assert redrive.result() == "PENDING"
    assert redrives(second, task_id) == 1


def test_a_bulk_redrive_skips_what_a_single_one_has_sent(first: Session, second: Session) -> None:
    task_ids = dead_letters(first, 3)
    with first.transaction():
        first.redrive(task_ids[1])
        assert second.redrive_where() == (2, 0)
        assert progress(second) == [("RUNNING", 2, 0, 1)]
        # It comes back, and goes on coming back.
        second.tick()
        assert progress(second) == [("RUNNING", 2, 0, 1)]
    second.tick()
    assert progress(second) == [("DONE", 2, 1, 0)]
    assert [redrives(second, task_id) for task_id in task_ids] == [1, 1, 1]


def test_a_single_redrive_is_refused_when_a_bulk_one_was_first(
    first: Session, second: Session
) -> None:
    task_ids = dead_letters(first, 3)
    with first.transaction():
        assert first.redrive_where() == (3, 0)
        redrive = second.start(second.redrive, task_ids[1])
        redrive.wait_until_blocked_by(first)
    with refused("RD004"):
        redrive.result()
    assert redrives(second, task_ids[1]) == 1


def test_two_bulk_redrives_send_each_dead_letter_once(first: Session, second: Session) -> None:
    dead_letters(first, 5)
    with first.transaction():
        assert first.redrive_where() == (5, 0)
        assert second.redrive_where("h") == (0, 0)
    second.tick()
    assert sorted(progress(second)) == [("DONE", 0, 5, 0), ("DONE", 5, 0, 0)]
    assert second.value("select count(*) from rdq.due where life = 1") == 5


def test_a_bulk_redrive_leaves_what_died_again_while_it_was_locked(
    first: Session, second: Session
) -> None:
    low, high = sorted(dead_letters(first, 2))
    with first.transaction():
        first.redrive(low)
        assert second.redrive_where() == (1, 0)
        # It lives and dies once more, after the bulk redrive began.
        first.bury(low)
    second.tick()
    assert progress(second) == [("DONE", 1, 1, 0)]
    assert [second.status(task_id) for task_id in (low, high)] == ["DEAD", "PENDING"]


def test_a_redrive_sends_what_was_locked_when_that_is_free(first: Session, second: Session) -> None:
    locked, *_ = dead_letters(first, 3)
    with first.transaction():
        first.execute("select from rdq.dead where task_id = %s for update", locked)
        assert second.redrive_where() == (2, 0)
    second.tick()
    assert progress(second) == [("DONE", 3, 0, 0)]
    assert redrives(second, locked) == 1


def test_a_purge_is_refused_when_a_redrive_was_first(first: Session, second: Session) -> None:
    task_id = dead_letter(first)
    with first.transaction():
        first.redrive(task_id)
        purge = second.start(second.purge, task_id)
        purge.wait_until_blocked_by(first)
    with refused("RD004"):
        purge.result()
    assert second.status(task_id) == "PENDING"
    assert second.outcomes(task_id) == ["FAILED"]


def test_a_redrive_is_told_that_a_purge_was_first(first: Session, second: Session) -> None:
    task_id = dead_letter(first)
    with first.transaction():
        first.purge(task_id)
        redrive = second.start(second.redrive, task_id)
        redrive.wait_until_blocked_by(first)
    with refused("RD003"):
        redrive.result()
    assert second.status(task_id) is None


def test_a_bulk_purge_leaves_what_a_bulk_redrive_has_sent(first: Session, second: Session) -> None:
    dead_letters(first, 4)
    with first.transaction():
        assert first.redrive_where() == (4, 0)
        assert second.purge_where() == 0
    assert second.purge_where() == 0
    assert second.value("select count(*) from rdq.due") == 4


def test_a_bulk_redrive_leaves_what_a_bulk_purge_has_deleted(
    first: Session, second: Session
) -> None:
    # With keys: those of the purged ones are not taken for nothing.
    for number in range(4):
        dead_letter(first, f"key {number}")
    with first.transaction():
        assert first.purge_where(max_tasks=2) == 2
        assert second.redrive_where() == (2, 0)
    second.tick()
    assert progress(second) == [("DONE", 2, 2, 0)]
    assert second.value("select count(*) from rdq.dedupe") == 2
    assert second.value("select count(*) from rdq.task") == 2


def test_of_two_purges_of_a_success_one_finds_it_gone(first: Session, second: Session) -> None:
    task_id = first.submit()
    first.complete(first.claim_one())
    with first.transaction():
        first.purge(task_id)
        purge = second.start(second.purge, task_id)
        purge.wait_until_blocked_by(first)
    with refused("RD003"):
        purge.result()


def test_a_bulk_redrive_gives_way_to_a_producer_that_is_submitting_the_same_key(
    first: Session, second: Session
) -> None:
    blocked = dead_letter(first, "key")
    others = dead_letters(first, 3)
    # It waits a fraction of a second, and not for the producer.
    second.execute("set statement_timeout = '5s'")
    with first.transaction():
        twin = first.submit("key")
        assert second.redrive_where() == (3, 1)
    assert [second.status(task_id) for task_id in others] == ["PENDING"] * 3
    assert second.status(blocked) == "DEAD"
    with refused("RD008"):
        second.redrive(blocked)
    second.cancel(twin)
    assert second.redrive(blocked) == "PENDING"


def test_a_bulk_redrive_waits_once_for_a_producer_of_many_of_its_keys(
    first: Session, second: Session
) -> None:
    tasks = [{"dedupe_key": f"key {number}"} for number in range(100)]
    first.bury(*first.submit_many(tasks))
    second.execute("set statement_timeout = '5s'")
    with first.transaction():
        first.submit_many(tasks)
        assert second.redrive_where() == (0, 100)


def test_a_bulk_redrive_does_not_deadlock_with_a_producer_of_two_of_its_keys(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    dead = {key: dead_letter(first, key) for key in ("left", "right")}
    producers = {key: open_session() for key in dead}
    with producers["left"].transaction(), producers["right"].transaction():
        # The redrive has one key or the other when it meets the producer, whatever its order.
        producers["left"].submit("left")
        bulk = second.start(second.redrive_where)
        joined = producers["left"].start(producers["left"].submit, "right")
        sent, skipped = bulk.result()
        joined.result()
    assert sent + skipped == 2
    assert second.status(dead["left"]) == "DEAD"


def test_a_redrive_that_is_killed_half_way_has_done_nothing(
    first: Session, second: Session
) -> None:
    low, high = sorted(dead_letters(first, 2))
    with first.transaction():
        first.execute("lock table rdq.due in share mode")
        bulk = second.start(second.redrive_where)
        bulk.wait_until_blocked_by(first)
        first.execute("select pg_terminate_backend(%s)", second.pid)
        with refused("57P01"):
            bulk.result()
    assert [first.status(task_id) for task_id in (low, high)] == ["DEAD", "DEAD"]
    assert first.redrive_where() == (2, 0)


def progress(session: Session) -> list[tuple[str, int, int, int]]:
    """Return of each bulk redrive its state, and how many it has sent, skipped and found locked."""
    return session.rows("select state, sent, skipped, locked from rdq.redrives order by began_at")


def redrives(session: Session, task_id: UUID) -> int:
    return int(session.value("select redrive_count from rdq.tasks where task_id = %s", task_id))
