"""A dedupe key whose holder can never run again is free for the next submit."""

from threading import Barrier
from uuid import UUID

from tests.races.conftest import OpenSession
from tests.races.sessions import Session

ROUNDS = 100
KEYS = 60
DOOMED = """
select rdq.submit('q', 'h', 'x'::text, dedupe_key => %s, give_up_at => now() - interval '1 hour')
"""


def test_a_fresh_submit_never_joins_a_task_past_its_deadline(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    sweeper, producer = open_session(), open_session()
    together = Barrier(4)

    def submit(session: Session) -> UUID:
        together.wait()
        return session.submit("key")

    def claim(session: Session) -> None:
        together.wait()
        session.claim(5)

    def sweep(session: Session) -> None:
        together.wait()
        session.tick()

    for _ in range(ROUNDS):
        doomed = first.value(DOOMED, "key")
        submits = [first.start(submit, first), producer.start(submit, producer)]
        others = [second.start(claim, second), sweeper.start(sweep, sweeper)]
        fresh = {call.result() for call in submits}
        for other in others:
            other.result()
        # Both of them stand for one task, which lives.
        assert len(fresh) == 1
        assert doomed not in fresh
        assert first.status(*fresh) in ("PENDING", "IN_FLIGHT")
        assert first.rows("select reason from rdq.dead where task_id = %s", doomed) == [
            ("DEADLINE",)
        ]
        first.cancel(*fresh)
    assert first.value("select count(*) from rdq.dead") == 2 * ROUNDS
    assert first.value("select count(*) from rdq.dedupe") == 0


def test_bulk_submits_and_a_bulk_redrive_with_the_same_keys_do_not_deadlock(
    first: Session, second: Session, open_session: OpenSession
) -> None:
    third = open_session()
    tasks = [{"dedupe_key": f"key {number}"} for number in range(KEYS)]
    together = Barrier(3)

    def submit(session: Session, items: list[dict[str, str]]) -> list[UUID]:
        together.wait()
        return session.submit_many(items)

    def redrive(session: Session) -> None:
        together.wait()
        session.redrive_where()

    for round_no in range(20):
        dead = first.submit_many(tasks)
        first.cancel_where()
        # The keys of some are held by what can never run again.
        for number in range(0, KEYS, 3):
            first.value(DOOMED, f"key {number}")
        forward = first.start(submit, first, tasks)
        backward = second.start(submit, second, tasks[::-1])
        bulk = third.start(redrive, third)
        ids = forward.result()
        assert ids == backward.result()[::-1], round_no
        bulk.result()
        # Each key has one live task, which both bulk submits were told.
        live = {row[0] for row in first.rows("select task_id from rdq.due")}
        assert live == set(ids)
        assert {first.status(task_id) for task_id in dead} <= {"DEAD", "PENDING"}
        first.cancel_where()
        first.purge_where()
        first.tick()
