"""Producers that submit with the same id or the same dedupe key at the same time."""

from collections.abc import Callable, Sequence
from threading import Event
from uuid import UUID, uuid4

from psycopg import Rollback

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session, refused

LIVE_WITH_A_KEY = """
    select t.id
    from rdq.task t
    where t.dedupe_key is not null and (
      exists (select from rdq.due d where d.task_id = t.id)
      or exists (select from rdq.lease l where l.task_id = t.id)
    )
    """


def test_a_submit_joins_the_task_of_a_submit_with_its_key_that_was_under_way(
    first: Session, second: Session
) -> None:
    with first.transaction():
        task_id = first.submit("key")
        submit = second.start(second.submit, "key")
        submit.wait_until_blocked_by(first)
    assert submit.result() == task_id
    assert live_tasks(second) == [task_id]


def test_a_submit_takes_the_key_of_one_that_is_rolled_back(first: Session, second: Session) -> None:
    with first.transaction():
        first.submit("key")
        submit = second.start(second.submit, "key")
        submit.wait_until_blocked_by(first)
        raise Rollback
    assert live_tasks(second) == [submit.result()]


def test_a_submit_takes_the_key_of_a_task_that_is_being_completed(
    first: Session, second: Session
) -> None:
    done = first.submit("key")
    claim = first.claim_one()
    with first.transaction():
        first.complete(claim)
        submit = second.start(second.submit, "key")
        submit.wait_until_blocked_by(first)
    assert live_tasks(second) == [submit.result()]
    assert submit.result() != done


def test_a_submit_joins_a_task_whose_completion_is_rolled_back(
    first: Session, second: Session
) -> None:
    task_id = first.submit("key")
    claim = first.claim_one()
    with first.transaction():
        first.complete(claim)
        submit = second.start(second.submit, "key")
        submit.wait_until_blocked_by(first)
        raise Rollback
    assert submit.result() == task_id


def test_a_submit_whose_key_becomes_free_while_it_looks_for_the_holder_takes_it(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    holder, worker = first.submit("key"), open_session()
    claim = worker.claim_one()
    first.execute("""
        create function wait_for_the_test() returns trigger language plpgsql
        as 'begin perform pg_advisory_xact_lock_shared(42); return null; end'
        """)
    first.execute("""
        create trigger wait_for_the_test after insert on rdq.dedupe
        for each statement execute function wait_for_the_test()
        """)
    with first.transaction():
        first.execute("select pg_advisory_xact_lock(42)")
        submit = second.start(second.submit, "key")
        submit.wait_until_blocked_by(first)
        # It has not got the key, and does not know yet whose it is.
        assert worker.complete(claim)
    assert live_tasks(second) == [submit.result()]
    assert submit.result() != holder


def test_bulk_submits_of_the_same_keys_in_opposite_orders_do_not_deadlock(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    tasks = [{"dedupe_key": f"key {number}"} for number in range(6)]
    holders = [open_session() for _ in range(2)]
    with holders[1].transaction(), holders[0].transaction():
        # Two in the middle, so that both have some keys when they meet.
        holders[0].submit("key 2")
        holders[1].submit("key 3")
        forward = first.start(first.submit_many, tasks)
        backward = second.start(second.submit_many, tasks[::-1])
        forward.wait_until_blocked()
        backward.wait_until_blocked()
    ids = forward.result()
    assert ids == backward.result()[::-1]
    assert sorted(ids) == live_tasks(first)


def test_two_submits_of_one_id_make_one_task(first: Session, second: Session) -> None:
    task_id = uuid4()
    with first.transaction():
        assert first.submit(task_id=task_id) == task_id
        submit = second.start(second.submit, task_id=task_id)
        submit.wait_until_blocked_by(first)
    assert submit.result() == task_id
    assert second.value("select count(*) from rdq.due") == 1


def test_a_submit_stores_the_id_of_one_that_is_rolled_back(first: Session, second: Session) -> None:
    task_id = uuid4()
    with first.transaction():
        first.submit(task_id=task_id)
        submit = second.start(second.submit, task_id=task_id)
        submit.wait_until_blocked_by(first)
        raise Rollback
    assert submit.result() == task_id
    assert second.value("select count(*) from rdq.due") == 1


def test_two_submits_of_one_id_and_other_keys_leave_the_second_key_free(
    first: Session, second: Session
) -> None:
    task_id = uuid4()
    for keys in (("a", "b"), (None, "c"), ("d", None)):
        task_id = uuid4()
        with first.transaction():
            first.submit(keys[0], task_id=task_id)
            submit = second.start(second.submit, keys[1], task_id=task_id)
            submit.wait_until_blocked_by(first)
        assert submit.result() == task_id
        if keys[1]:
            assert second.submit(keys[1]) != task_id


def test_a_submit_to_another_queue_of_an_id_that_was_under_way_is_refused(
    first: Session, second: Session
) -> None:
    first.execute("select rdq.create_queue('other')")
    task_id = uuid4()
    with first.transaction():
        first.submit("key", task_id=task_id)
        submit = second.start(second.submit, "key", task_id=task_id, queue="other")
        submit.wait_until_blocked_by(first)
    with refused("RD005"):
        submit.result()
    assert second.submit("key", queue="other") != task_id


def test_a_submit_of_an_id_that_is_being_purged_is_a_new_task(
    first: Session, second: Session
) -> None:
    task_id = first.submit()
    first.complete(first.claim_one())
    with first.transaction():
        first.purge(task_id)
        submit = second.start(second.submit, task_id=task_id)
        submit.wait_until_blocked_by(first)
    assert submit.result() == task_id
    assert second.status(task_id) == "PENDING"
    assert second.outcomes(task_id) == []


def test_50_submits_of_one_key_all_get_an_id_while_its_holders_end(
    open_session: OpenSession,
) -> None:
    submitters, workers = [open_session() for _ in range(50)], [open_session() for _ in range(3)]
    observer = open_session()
    done = Event()
    calls = [s.start(submit_repeatedly, s, 6) for s in submitters]
    ends = [w.start(end_tasks, w, end, done) for w, end in zip(workers, ENDINGS, strict=True)]
    watch = observer.start(most_live_tasks, observer, done)
    try:
        ids = [task_id for call in calls for task_id in call.result()]
    finally:
        done.set()
    assert len(ids) == 300
    assert watch.result() == 1
    ended = sum(end.result() for end in ends)
    assert set(ids) <= {row[0] for row in observer.rows("select id from rdq.task")}
    assert ended >= 1
    assert len(set(ids)) - ended in (0, 1)


def submit_repeatedly(session: Session, times: int) -> list[UUID]:
    return [session.submit("key") for _ in range(times)]


def end_tasks(session: Session, end: Callable[[Session, Claim], object], done: Event) -> int:
    """End live tasks until all submits have their ids; return how many this session ended."""
    ended = 0
    while not done.is_set():
        for claim in session.claim():
            end(session, claim)
            ended += 1
    return ended


def most_live_tasks(session: Session, done: Event) -> int:
    most = 0
    while not done.is_set():
        most = max(most, len(live_tasks(session)))
    return most


def live_tasks(session: Session) -> Sequence[UUID]:
    return sorted(row[0] for row in session.rows(LIVE_WITH_A_KEY))


def cancel(session: Session, claim: Claim) -> None:
    session.cancel(claim.task_id)


def fail_for_good(session: Session, claim: Claim) -> None:
    assert session.fail(claim, "PERMANENT") == "DEAD"


ENDINGS: tuple[Callable[[Session, Claim], object], ...] = (Session.complete, fail_for_good, cancel)
