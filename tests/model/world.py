"""The database and the model side by side, and the comparison after each call."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from tests.model.database import Claim, Database, Seen
from tests.model.invariants import assert_conserved
from tests.model.model import DAY, Attempt, Model, Settings, Task, Window

Item = TypeVar("Item")

PICK = st.integers(0, 99)
MINUTE = timedelta(minutes=1)
RETRY_AFTER_CAP = DAY
QUIET_BEFORE = timedelta(seconds=0.1)
QUIET_AFTER = timedelta(seconds=14)

EXACT = Settings(max_attempts=6)
SPREAD = Settings(
    jitter=0.5, rungs=(MINUTE / 2, 10 * MINUTE), max_attempts=3, give_up_after=30 * MINUTE
)
QUEUES: Mapping[str, Settings] = {"exact": EXACT, "spread": SPREAD}
"""One whose due times the model knows to the microsecond, and one with dice and deadlines."""

IN_THE_DATABASE: Mapping[str, Mapping[str, object]] = {
    "exact": {"backoff_base": "1 minute", "backoff_factor": 2, "backoff_cap": "4 minutes"},
    "spread": {"ladder": ["30 seconds", "10 minutes"], "give_up_after": "30 minutes"},
}


class World(RuleBasedStateMachine):
    """Where the rules play."""

    connection: psycopg.Connection[Any]

    def begin(self) -> None:
        self.database = Database(self.connection)
        self.database.begin()
        self.model = Model(dict(QUEUES))
        self.ids: list[UUID] = []
        self.claims: list[Claim] = []
        for queue, settings in QUEUES.items():
            self.database.configure(
                queue,
                {
                    "max_attempts": settings.max_attempts,
                    "ambiguous_attempts": settings.ambiguous_attempts,
                    "vanish_limit": settings.vanish_limit,
                    "max_releases": settings.max_releases,
                    "jitter": settings.jitter,
                    **IN_THE_DATABASE[queue],
                },
            )

    @invariant()
    def each_task_is_as_the_model_says(self) -> None:
        seen = self.database.seen()
        assert seen.keys() == self.model.tasks.keys()
        for task in self.model.tasks.values():
            self.settle(task, seen[task.id].status)
            self.compare(task, seen[task.id])

    @invariant()
    def tickets_are_conserved(self) -> None:
        assert_conserved(self.connection)

    def compare(self, task: Task, seen: Seen) -> None:
        """Check a task, and take over the moments that the database chose."""
        assert (seen.status, seen.dead_reason) == (task.status, task.dead_reason), task
        assert seen.redrive_count == task.life
        spent = task.spent(self.model.settings(task))
        assert seen.attempt_count == spent + (task.status == "IN_FLIGHT"), task
        assert [(a.life, a.outcome, a.error_class, a.late) for a in task.attempts] == [
            (int(str(life)), *rest) for life, *rest in seen.attempts
        ]
        task.due = taken_over(task.due, seen.due_at)
        task.expires = taken_over(task.expires, seen.expires_at)
        task.ended = taken_over(task.ended, seen.ended_at)
        if task.live:
            task.give_up = taken_over(task.give_up, seen.give_up_at)
        if task.life == 0 and seen.give_up_at:
            task.span = seen.give_up_at - seen.first_start

    def settle(self, task: Task, status: str | None) -> None:
        """Learn from the database what the dice of the jitter said about the deadline."""
        if task.perhaps_too_late and status == "DEAD":
            task.bury("DEADLINE", task.perhaps_too_late)
        task.perhaps_too_late = None

    def check_answer(
        self,
        task_id: UUID,
        status: str | None,
        due_at: datetime | None,
        reason: str | None,
        stale: bool,
    ) -> None:
        """Check what a report was told about a task."""
        task = self.model.tasks.get(task_id)
        if stale or task is None:
            assert (due_at, reason) == (None, None)
            assert status == (task.status if task else None) or (task and task.perhaps_too_late)
            return
        self.settle(task, status)
        assert (status, reason) == (task.status, task.dead_reason)
        taken_over(task.due, due_at)

    def check_reclaimed(
        self, queues: Iterable[str], limit: int, now: Window, seen: Mapping[UUID, Seen]
    ) -> set[UUID]:
        """Check which expired leases were taken back, and do so in the model."""
        expired = [
            task
            for task in self.model.with_status("IN_FLIGHT", queues)
            if task.expires and task.expires.high <= now.low
        ]
        reclaimed = [t for t in expired if len(seen[t.id].attempts) > len(t.attempts)]
        assert len(reclaimed) == min(limit, len(expired))
        for task in reclaimed:
            attempt = Attempt(task.life, "LEASE_EXPIRED", token=task.token)
            task.conclude(attempt, self.model.settings(task), now)
            self.settle(task, seen[task.id].status)
        return {task.id for task in reclaimed}

    def end(
        self, claims: Sequence[Claim], failures: Sequence[Mapping[str, Any] | None], now: Window
    ) -> list[bool]:
        """Report in the model: say for each claim whether it was stale."""
        stale = []
        for claim, failure in zip(claims, failures, strict=True):
            task = self.model.held(*claim)
            stale.append(task is None)
            if task:
                self._end(task, failure, now)
            elif gone := self.model.tasks.get(claim.task_id):
                gone.note_late(claim.token, "SUCCEEDED" if failure is None else "FAILED")
        return stale

    def _end(self, task: Task, failure: Mapping[str, Any] | None, now: Window) -> None:
        settings = self.model.settings(task)
        if failure is None:
            task.conclude(Attempt(task.life, "SUCCEEDED"), settings, now)
            return
        attempt = Attempt(task.life, "FAILED", failure.get("class") or "AMBIGUOUS")
        task.conclude(attempt, settings, now, asked_for(failure, now, settings))

    def live_again(
        self,
        task: Task,
        start: Window,
        give_up: Window | None = None,
        to_queue: str | None = None,
    ) -> None:
        task.life += 1
        task.queue = to_queue or task.queue
        task.wait(start)
        task.give_up = give_up or (start + task.span if task.span else None)

    def a_task(self, pick: int, status: str) -> UUID:
        """Choose a task, most of the time one with this status."""
        return chosen([t.id for t in self.model.with_status(status, QUEUES)], self.ids, pick)

    def pass_time_until(self, moment: datetime) -> None:
        self.pass_time(max(moment - self.database.now(), timedelta()))

    def pass_time(self, by: timedelta) -> None:
        """Let time pass: so much, or a little more.

        More where something would happen within seconds from then: before the next call in one
        run and after it in another, and no run could be repeated. What a call schedules is now, or
        at least a quarter of a minute away.
        """
        then = self.database.now() + by
        for moment in sorted(self.model.moments()):
            if then - QUIET_BEFORE < moment < then + QUIET_AFTER:
                then = moment + QUIET_BEFORE
        by = then - self.database.now()
        self.database.shift(by)
        self.model.shift(by)


def asked_for(failure: Mapping[str, Any], now: Window, settings: Settings) -> Window | None:
    """Return the earliest moment for which a failure asks, if it says something meaningful."""
    seconds = failure.get("retry_after")
    if not isinstance(seconds, int):
        return None
    wait = min(timedelta(seconds=min(seconds, 10**9)), RETRY_AFTER_CAP)
    return now.widened(wait, wait * (1 + settings.jitter))


def chosen(preferred: Sequence[Item], others: Sequence[Item], pick: int) -> Item:
    """Choose one of the preferred, or in a quarter of the cases of all."""
    items = preferred if preferred and pick % 4 else others
    return items[pick // 4 % len(items)]


def taken_over(window: Window | None, moment: datetime | None) -> Window | None:
    """Check a moment that the database shows against the window, and narrow the window to it."""
    if window is None:
        assert moment is None
        return None
    return window.found(moment)
