"""The doctor names who holds what anybody can take, and a collation that has changed."""

from collections.abc import Callable
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]


def test_who_holds_the_lock_of_a_queue_is_named(
    db: Connection, connect: Callable[..., Connection]
) -> None:
    db.execute("select rdq.create_queue('q')")
    stranger = connect()
    stranger.execute("select pg_advisory_lock(rdq._queue_lock_class(), rdq._queue_lock('q'))")
    found = db.execute(
        "select subject, advice from rdq.doctor() where finding ~ 'advisory lock'"
    ).fetchall()
    pid = stranger.info.backend_pid
    assert found == [
        (f"session {pid}", f"select pg_terminate_backend({pid});  -- or end it where it runs")
    ]
    stranger.execute("select pg_advisory_unlock_all()")
    assert not db.execute("select from rdq.doctor() where finding ~ 'advisory lock'").fetchall()


def test_a_collation_of_another_version_is_told_before_a_lost_queue(db: Connection) -> None:
    # https://github.com/zulip/zulip/issues/18847
    db.execute("select rdq.create_queue('q'), rdq.submit('q', 'h', 'x'::text)")
    db.execute("delete from rdq.queue")
    lost = "select advice from rdq.doctor() where finding ~ 'does not exist'"
    assert "create_queue" in db.execute(lost.encode()).fetchall()[0][0]
    db.execute(
        "create or replace function rdq._collation_has_changed() returns boolean"
        " language sql stable return true"
    )
    db.execute("discard plans")
    assert "reindex" in db.execute(lost.encode()).fetchall()[0][0]
    [(advice,)] = db.execute(
        "select advice from rdq.doctor() where finding ~ 'collation has another version'"
    ).fetchall()
    assert "refresh collation version" in advice
