"""Dead letters on demand, and what happens to them when they are redriven."""

from uuid import UUID

from psycopg.types.json import Jsonb

from tests.conftest import Connection


class Dead:
    """Makes dead letters, in the queue payments if nothing else is said."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        db.execute("select rdq.create_queue('payments'), rdq.create_queue('mails')")

    def letters(
        self,
        count: int = 1,
        *,
        queue: str = "payments",
        error_type: str = "TimeoutError",
        message: str = "no answer",
        error_class: str = "PERMANENT",
        payload: str | bytes = '{"order": 42}',
    ) -> list[UUID]:
        """Let some tasks die at once."""
        error = {"type": error_type, "message": message, "class": error_class, "stack": "a:1\nb:2"}
        rows = self._db.execute(
            """
            select rdq.submit(queue => %s, handler => 'charge', payload => %s, error => %s)
            from generate_series(1, %s)
            """,
            [queue, payload, Jsonb(error), count],
        )
        return [task_id for (task_id,) in rows]

    def work(self, *, succeed: bool, queue: str = "payments", at_most: int = 10000) -> int:
        """Claim what is due, and report it; return how many tasks that were."""
        failure = None if succeed else Jsonb({"type": "E", "message": "m", "class": "PERMANENT"})
        rows = self._db.execute(
            "select task_id, claim_token from rdq.claim(array[%s], 'test', %s)", [queue, at_most]
        ).fetchall()
        if rows:
            ids, tokens = map(list, zip(*rows, strict=True))
            self._db.execute(
                "select rdq.report(%s::uuid[], %s::uuid[], %s::jsonb[])",
                [ids, tokens, [failure] * len(rows)],
            )
        return len(rows)

    def tick(self) -> None:
        """Do a step of what runners do."""
        self._db.execute("select rdq.tick()")

    def count(self, queue: str = "payments") -> int:
        """Return how many dead letters there are."""
        [(count,)] = self._db.execute(
            "select count(*) from rdq.dead_letters where queue = %s", [queue]
        )
        return int(count)
