"""That copies of tasks are tasks, as the functions would have written them."""

from typing import Any, get_args

import psycopg

from tests.bench.contender import Pile
from tests.bench.contenders.rdq import FEW, QUEUE, Rdq

COUNT = 3 * FEW


def test_copies_are_counted_redriven_and_run_like_the_tasks_that_they_are_of(
    db: psycopg.Connection[Any],
) -> None:
    rdq = Rdq()
    db.execute("select rdq.create_queue(%s)", [QUEUE])
    indexes = _indexes(db)
    rdq.pile_up(db, get_args(Pile), COUNT)
    assert _indexes(db) == indexes
    assert _stats(db) == (0, COUNT, COUNT)
    assert rdq.executions(db) == 2 * COUNT  # of the dead, what the producer handed over
    assert rdq.redrive_all(db) == COUNT
    while rdq.drain(db, FEW):
        pass
    assert _stats(db) == (0, COUNT, 0)
    assert db.execute("select * from rdq.doctor()").fetchall() == []


def test_the_id_of_a_copy_is_of_the_moment_at_which_it_was_submitted(
    db: psycopg.Connection[Any],
) -> None:
    db.execute("select rdq.create_queue(%s)", [QUEUE])
    Rdq().pile_up(db, ["scheduled"], COUNT)
    apart = db.execute(
        """
        select
          count(distinct id), count(distinct created_at),
          max(abs(
            extract(epoch from created_at) * 1000
              - ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint
          )) < 500
        from rdq.task
        """
    ).fetchone()
    assert apart == (COUNT, COUNT // FEW, True)


def _indexes(db: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return db.execute(
        "select indexname, indexdef from pg_indexes where schemaname = 'rdq' order by indexname"
    ).fetchall()


def _stats(db: psycopg.Connection[Any]) -> tuple[Any, ...] | None:
    return db.execute("select due, scheduled, dead from rdq.queue_stats").fetchone()
