"""Two queues, and what is in them."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

SETTINGS = {"backoff_base": "1 minute", "jitter": 0}


class Tasks:
    """The tasks of the test's database, seen from another session: only what is committed."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self.db = db
        for queue in ("payments", "mails"):
            db.execute("select rdq.create_queue(%s, %s)", [queue, Jsonb(SETTINGS)])

    def rows(self, query: str, *parameters: object) -> list[Any]:
        """Return the rows of a query, their columns by name."""
        cursor = self.db.cursor(row_factory=namedtuple_row)
        return cursor.execute(query.encode(), parameters).fetchall()

    def all(self) -> list[Any]:
        """Return every task: what was asked and its status, in the order of creation."""
        return self.rows(
            "select t.*, s.status, s.dead_reason from rdq.tasks s"
            " cross join rdq._task(s.task_id) t order by t.id"
        )

    def one(self, task_id: UUID) -> Any:
        """Return one task."""
        [task] = [task for task in self.all() if task.id == task_id]
        return task

    def history(self, task_id: UUID) -> list[Any]:
        """Return every attempt of a task."""
        return self.rows("select * from rdq.history(%s)", task_id)


@pytest.fixture
def tasks(db: psycopg.Connection[Any]) -> Tasks:
    return Tasks(db)
