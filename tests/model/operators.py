"""What operators do."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.model.model import DAY, Attempt, Task, Window
from tests.model.world import MINUTE, PICK, QUEUES, World

QUEUE = st.sampled_from(list(QUEUES))
REASON = st.sampled_from([None, None, "PERMANENT", "EXHAUSTED", "CANCELLED"])
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.sampled_from([1, 2, 6]),
        "ambiguous_attempts": st.integers(1, 3),
        "vanish_limit": st.integers(1, 3),
        "max_releases": st.integers(0, 2),
        "keep_dead": st.sampled_from([None, 2 * DAY]),
        "paused": st.sampled_from([False, False, True]),
    },
)
REDRIVE = "select * from rdq.redrive(%s, give_up_at => %s, to_queue => %s, to_handler => %s)"
REDRIVE_WHERE = """
select matched, sent, skipped
from rdq.redrive_where(%s, dead_reason => %s, canary => %s, dry_run => %s, to_queue => %s)
"""
CANCEL_WHERE = "select * from rdq.cancel_where(%s, status => %s, max_tasks => %s, dry_run => %s)"
PURGE_WHERE = "select * from rdq.purge_where(%s, dead_reason => %s, max_tasks => %s, dry_run => %s)"


class Operators(World):
    @rule(
        pick=PICK,
        status=st.sampled_from(["PENDING", "IN_FLIGHT", "DEAD", "SUCCEEDED"]),
        purge=st.sampled_from([False, False, True]),
    )
    def act_on_one(self, pick: int, status: str, purge: bool) -> None:
        act = self.purge if purge else self.cancel
        act(self.a_task(pick, status))

    def cancel(self, task_id: UUID) -> None:
        task = self.model.tasks.get(task_id)
        query = "select rdq.cancel(%s, 'test')"
        if task is None or not task.live:
            assert self.database.refusal(query, task_id) == ("RD004" if task else "RD003")
            return
        _, now = self.database.timed(query, task_id)
        if task.status == "IN_FLIGHT":
            task.attempts.append(Attempt(task.life, "RELEASED", token=task.token))
        task.bury("CANCELLED", now)

    @rule(
        queue=QUEUE,
        status=st.sampled_from([None, "PENDING", "IN_FLIGHT"]),
        limit=st.sampled_from([1, 2, 100]),
        dry_run=st.sampled_from([False, False, True]),
    )
    def cancel_where(self, queue: str, status: str | None, limit: int, dry_run: bool) -> None:
        matching = [
            task
            for task in self.model.tasks.values()
            if task.live and task.queue == queue and status in (None, task.status)
        ]
        [counts], now = self.database.timed(CANCEL_WHERE, queue, status, limit, dry_run)
        seen = self.database.seen()
        # Which of them go first is not promised.
        cancelled = [task for task in matching if seen[task.id].status == "DEAD"]
        assert len(cancelled) == (0 if dry_run else min(limit, len(matching)))
        assert counts == (len(cancelled), len(matching) - len(cancelled))
        for task in cancelled:
            if task.status == "IN_FLIGHT":
                task.attempts.append(Attempt(task.life, "RELEASED", token=task.token))
            task.bury("CANCELLED", now)

    @rule(
        pick=PICK,
        give_up_in=st.sampled_from([None, None, 5 * MINUTE]),
        to_queue=st.sampled_from([None, None, *QUEUES]),
    )
    def redrive(self, pick: int, give_up_in: timedelta | None, to_queue: str | None) -> None:
        task_id = self.a_task(pick, "DEAD")
        task = self.model.tasks.get(task_id)
        start = self.database.now()
        give_up = Window(start, start) + give_up_in if give_up_in else None
        to_handler = to_queue and "sent"
        parameters = (task_id, give_up and give_up.low, to_queue, to_handler)
        if task is None or task.status != "DEAD":
            refusal = self.database.refusal(REDRIVE, *parameters)
            assert refusal == ("RD004" if task else "RD003")
            return
        if task.without_span and not give_up:
            assert self.database.refusal(REDRIVE, *parameters) == "RD002"
            return
        target = to_queue or task.queue
        self.model.free(target, task.key, Window(start, start))
        if self.model.holder(target, task.key):
            assert self.database.refusal(REDRIVE, *parameters) == "RD008"
        else:
            [(status, due_at, life)], now = self.database.timed(REDRIVE, *parameters)
            self.live_again(task, now, give_up, to_queue)
            assert (status, life) == ("PENDING", task.life)
            assert now.low <= due_at <= now.high

    def purge(self, task_id: UUID) -> None:
        task = self.model.tasks.get(task_id)
        query = "select rdq.purge(%s)"
        if task is None or task.live:
            assert self.database.refusal(query, task_id) == ("RD004" if task else "RD003")
            return
        self.database.rows(query, task_id)
        del self.model.tasks[task_id]

    @rule(
        queue=QUEUE,
        reason=REASON,
        dry_run=st.booleans(),
        canary=st.sampled_from([0, 0, 1, 2]),
        purge=st.sampled_from([0, 0, 0, 1, 2]),
        to_queue=st.sampled_from([None, None, *QUEUES]),
    )
    def act_on_many(
        self,
        queue: str,
        reason: str | None,
        dry_run: bool,
        canary: int,
        purge: int,
        to_queue: str | None,
    ) -> None:
        dead = self.model.with_status("DEAD", [queue])
        matching = [task for task in dead if reason in (None, task.dead_reason)]
        if purge:
            self.purge_where(matching, queue, reason, purge, dry_run)
        else:
            self.redrive_where(matching, queue, reason, canary, dry_run, to_queue)

    def redrive_where(
        self,
        matching: list[Task],
        queue: str,
        reason: str | None,
        canary: int,
        dry_run: bool,
        to_queue: str | None,
    ) -> None:
        # After a canary, and for a paused queue, ticks send the rest, to where it came from.
        later = bool(canary) or self.model.queues[queue].paused
        to_queue = None if later else to_queue
        target = to_queue or queue
        [counts], now = self.database.timed(REDRIVE_WHERE, queue, reason, canary, dry_run, to_queue)
        if dry_run:
            assert counts == (len(matching), 0, 0)
            return
        seen = self.database.seen()
        sent = [task for task in matching if seen[task.id].status == "PENDING"]
        for task in sent if later else matching:
            if not task.without_span:
                self.model.free(target, task.key, now)
        if later:
            assert len(sent) <= canary
            for task in sent:
                assert not self.model.holder(queue, task.key)
                self.live_again(task, now)
            rest = {task.id: task.life for task in matching if task not in sent}
            self.model.redrives.append(rest)
            assert counts == (len(matching), len(sent), 0)
            return
        for task in matching:
            if task not in sent and not task.without_span:
                # A live task has its key, or another one of them had it first.
                twins = [t for t in sent if t.key == task.key]
                assert task.key
                assert twins or self.model.holder(target, task.key)
        for task in sent:
            assert not task.without_span
            assert not self.model.holder(target, task.key)
            self.live_again(task, now, to_queue=to_queue)
        assert counts == (len(matching), len(sent), len(matching) - len(sent))

    def purge_where(
        self, matching: list[Task], queue: str, reason: str | None, limit: int, dry_run: bool
    ) -> None:
        oldest = sorted(matching, key=lambda task: (task.ended and task.ended.low, task.id))
        purged = [] if dry_run else oldest[:limit]
        counts = self.database.rows(PURGE_WHERE, queue, reason, limit, dry_run)
        for task in purged:
            del self.model.tasks[task.id]
        assert counts == [(len(purged), len(matching) - len(purged))]

    @rule(queue=QUEUE, changes=CHANGES)
    def alter_queue(self, queue: str, changes: dict[str, Any]) -> None:
        stored = {key: value for key, value in changes.items() if key != "paused"}
        if keep := stored.get("keep_dead"):
            stored["keep_dead"] = keep.total_seconds()
        self.database.configure(queue, stored)
        if "paused" in changes:
            call = "pause" if changes["paused"] else "resume"
            self.database.rows(f"select rdq.{call}_queue(%s)", queue)
        self.model.queues[queue] = replace(self.model.queues[queue], **changes)
