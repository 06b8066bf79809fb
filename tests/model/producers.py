"""What producers do."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from psycopg.types.json import Jsonb

from tests.model.model import DAY, Attempt, Task, Window
from tests.model.world import MINUTE, PICK, QUEUES, World, asked_for

SUBMIT = """
select rdq.submit(%s, 'h', 'payload'::text, task_id => %s, dedupe_key => %s, error => %s,
  give_up_at => %s, run_at => %s, max_attempts => %s)
"""
KNOWN = "select rdq.submit(%s, 'h', 'other'::text, dedupe_key => 'a', task_id => %s)"


QUEUE = st.sampled_from(list(QUEUES))
ORDERS = st.fixed_dictionaries(
    {
        "queue": QUEUE,
        "key": st.sampled_from([None, None, "a", "b"]),
        "error": st.sampled_from(
            [None, None, None, None, {}, {"class": "TRANSIENT", "retry_after": 300}]
            + [{"class": name} for name in ("TRANSIENT", "PERMANENT", "AMBIGUOUS")]
        ),
        "give_up_in": st.sampled_from([None, None, None, 3 * MINUTE, DAY, -MINUTE]),
        "run_in": st.sampled_from([None, None, None, 2 * MINUTE]),
        "max_attempts": st.sampled_from([None, None, None, 1, 2]),
    }
)


class Producers(World):
    @initialize(orders=st.lists(ORDERS, min_size=2, max_size=5))
    def begin_with_tasks(self, orders: list[dict[str, Any]]) -> None:
        self.begin()
        for order in orders:
            self.submit(**order)

    @rule(order=ORDERS, again=st.one_of(st.none(), st.none(), PICK))
    def submit_another(self, order: dict[str, Any], again: int | None) -> None:
        if again is None:
            self.submit(**order)
        else:
            self.submit_a_known_id(self.a_task(again, "DEAD"))

    def submit(
        self,
        queue: str,
        key: str | None,
        error: dict[str, Any] | None,
        give_up_in: timedelta | None,
        run_in: timedelta | None,
        max_attempts: int | None,
    ) -> None:
        new_id = UUID(int=len(self.ids) + 1)
        self.ids.append(new_id)
        start = Window(*[self.database.now()] * 2)
        too_late = give_up_in is not None and give_up_in < timedelta()
        run_at = start + run_in if run_in and not too_late else None
        give_up = start + give_up_in if give_up_in else None
        [(task_id,)], now = self.database.timed(
            SUBMIT,
            queue,
            new_id,
            key,
            None if error is None else Jsonb(error),
            give_up and give_up.low,
            run_at and run_at.low,
            max_attempts,
        )
        self.model.free(queue, key, now)
        if holder := self.model.holder(queue, key):
            assert task_id == holder.id
            return
        assert task_id == new_id
        settings = self.model.queues[queue]
        if give_up is None and settings.give_up_after:
            give_up = now.or_later(run_at) + settings.give_up_after
        task = self.model.tasks[task_id] = Task(task_id, queue, key, max_attempts, give_up)
        if error is None:
            task.wait(now.or_later(run_at))
        else:
            failure = Attempt(0, "FAILED", error.get("class", "AMBIGUOUS"), handed_over=True)
            asked = asked_for(error, now, settings)
            task.conclude(failure, settings, now, asked.or_later(run_at) if asked else run_at)

    def submit_a_known_id(self, task_id: UUID) -> None:
        if task := self.model.tasks.get(task_id):
            for queue in QUEUES:
                if queue == task.queue:
                    assert self.database.rows(KNOWN, queue, task_id) == [(task_id,)]
                else:
                    assert self.database.refusal(KNOWN, queue, task_id) == "RD005"
