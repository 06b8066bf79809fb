"""What rdq promises about a task, in plain Python: no tables, no locks, one task at a time.

Where the database's clock or its dice decide, the model knows a window: the earliest and the latest
moment that would be right. What the database then shows is checked against it and taken over.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

DAY = timedelta(days=1)
BATCH_WAIT = timedelta(hours=1)
"""So long retention lets what has succeeded gather, where it is kept for a day."""
LIVE = ("PENDING", "IN_FLIGHT")


@dataclass(frozen=True)
class Window:
    """A moment between two others, both included."""

    low: datetime
    high: datetime

    def __add__(self, delay: timedelta) -> "Window":
        return Window(self.low + delay, self.high + delay)

    def widened(self, shortest: timedelta, longest: timedelta) -> "Window":
        return Window(self.low + shortest, self.high + longest)

    def or_later(self, other: "Window | None") -> "Window":
        """Return the later one of the two moments."""
        return Window(max(self.low, other.low), max(self.high, other.high)) if other else self

    def found(self, moment: datetime | None) -> "Window":
        """Narrow it to what the database shows."""
        assert moment is not None
        assert self.low <= moment <= self.high, f"{moment} is not from {self.low} to {self.high}"
        return Window(moment, moment)


@dataclass(frozen=True)
class Settings:
    """The settings of a queue that decide about its tasks."""

    max_attempts: int = 4
    ambiguous_attempts: int = 2
    vanish_limit: int = 2
    max_releases: int = 1
    lease: timedelta = timedelta(minutes=1)
    rungs: tuple[timedelta, ...] = (
        timedelta(minutes=1),
        timedelta(minutes=2),
        timedelta(minutes=4),
    )
    """The ladder: the last rung repeats."""
    jitter: float = 0
    give_up_after: timedelta | None = None
    keep_succeeded: timedelta | None = DAY
    keep_dead: timedelta | None = None
    paused: bool = False

    def delay(self, rung: int) -> tuple[timedelta, timedelta]:
        """Return the shortest and the longest delay of a rung, counted from 1."""
        middle = self.rungs[min(rung, len(self.rungs)) - 1]
        return middle * (1 - self.jitter), middle * (1 + self.jitter)


@dataclass(frozen=True)
class Attempt:
    """A row of the history; `token` where somebody other than the holder ended the claim."""

    life: int
    outcome: str
    error_class: str | None = None
    handed_over: bool = False
    token: UUID | None = None
    late: str | None = None


@dataclass
class Task:
    """A task, where it is, and its history."""

    id: UUID
    queue: str
    key: str | None = None
    max_attempts: int | None = None
    give_up: Window | None = None
    span: timedelta | None = None
    """From the first start to the deadline: a redrive extends the deadline by so much."""
    status: str = "PENDING"
    life: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    due: Window | None = None
    token: UUID | None = None
    expires: Window | None = None
    ended: Window | None = None
    dead_reason: str | None = None
    perhaps_too_late: Window | None = None
    """When it was decided whether the next attempt is past the deadline: only the dice know."""

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def without_span(self) -> bool:
        """Whether it was submitted after its own deadline."""
        return self.span is not None and self.span <= timedelta()

    def of_this_life(self) -> Iterator[Attempt]:
        return (attempt for attempt in self.attempts if attempt.life == self.life)

    def runs(self) -> int:
        return sum(a.outcome != "RELEASED" and not a.handed_over for a in self.of_this_life())

    def rungs(self) -> int:
        return sum(a.outcome != "RELEASED" for a in self.of_this_life())

    def ambiguous(self) -> int:
        return sum(a.error_class == "AMBIGUOUS" and not a.handed_over for a in self.of_this_life())

    def vanished(self) -> int:
        """Count the attempts that vanished in a row."""
        count = 0
        for attempt in reversed(list(self.of_this_life())):
            if attempt.outcome != "LEASE_EXPIRED":
                break
            count += 1
        return count

    def spent(self, settings: Settings) -> int:
        releases = sum(a.outcome == "RELEASED" for a in self.of_this_life())
        return self.runs() + max(releases - settings.max_releases, 0)

    def budget(self, settings: Settings) -> int:
        return self.max_attempts or settings.max_attempts

    def runnable(self, settings: Settings, now: Window) -> bool:
        """Whether a claim runs it, and does not bury it."""
        in_time = self.give_up is None or self.give_up.low > now.high
        return in_time and self.spent(settings) < self.budget(settings)

    def wait(self, due: Window) -> None:
        self._let_go()
        self.status, self.due = "PENDING", due

    def hold(self, token: UUID, expires: Window) -> None:
        self._let_go()
        self.status, self.token, self.expires = "IN_FLIGHT", token, expires

    def bury(self, reason: str, now: Window) -> None:
        self._let_go()
        self.status, self.dead_reason, self.ended = "DEAD", reason, now

    def succeed(self, now: Window) -> None:
        self._let_go()
        self.status, self.ended = "SUCCEEDED", now

    def conclude(
        self, attempt: Attempt, settings: Settings, now: Window, not_before: Window | None = None
    ) -> None:
        """End an attempt: record it, and decide where the task goes."""
        self.attempts.append(attempt)
        if attempt.outcome == "SUCCEEDED":
            self.succeed(now)
            return
        due = now
        if attempt.outcome != "RELEASED":
            expired = attempt.outcome == "LEASE_EXPIRED"
            due = now.widened(*settings.delay(self.vanished() if expired else self.rungs()))
        due = due.or_later(not_before)
        if reason := self._used_up(attempt, settings):
            self.bury(reason, now)
        elif self.give_up and due.low > self.give_up.high:
            self.bury("DEADLINE", now)
        else:
            self.wait(due)
            if self.give_up and due.high > self.give_up.low:
                self.perhaps_too_late = now

    def note_late(self, token: UUID, outcome: str) -> None:
        """Note on the attempt of a lost claim what its holder reported; the first report stays."""
        self.attempts = [
            replace(a, late=outcome) if a.token == token and a.late is None else a
            for a in self.attempts
        ]

    def _used_up(self, attempt: Attempt, settings: Settings) -> str | None:
        budget = self.budget(settings)
        if attempt.error_class == "PERMANENT":
            return "PERMANENT"
        most = min(settings.vanish_limit, budget)
        if attempt.outcome == "LEASE_EXPIRED" and self.vanished() >= most:
            return "VANISHED"
        if attempt.error_class == "AMBIGUOUS" and self.ambiguous() >= settings.ambiguous_attempts:
            return "AMBIGUOUS"
        if self.spent(settings) >= budget:
            return "UNROUTABLE" if attempt.outcome == "RELEASED" else "EXHAUSTED"
        return None

    def _let_go(self) -> None:
        self.due = self.token = self.expires = self.ended = self.dead_reason = None
        self.perhaps_too_late = None


class Model:
    """All queues and tasks."""

    def __init__(self, queues: dict[str, Settings]) -> None:
        self.queues = queues
        self.tasks: dict[UUID, Task] = {}
        # What bulk redrives have yet to send: tasks, and the life in which each died.
        self.redrives: list[dict[UUID, int]] = []

    def settings(self, task: Task) -> Settings:
        return self.queues[task.queue]

    def holder(self, queue: str, key: str | None) -> Task | None:
        """Return the live task that has a dedupe key."""
        if key is None:
            return None
        live = (t for t in self.tasks.values() if t.live and (t.queue, t.key) == (queue, key))
        return next(live, None)

    def free(self, queue: str, key: str | None, now: Window) -> None:
        """Bury the holder of a key that can never run again, as whoever wants the key does."""
        holder = self.holder(queue, key)
        settings = self.queues[queue]
        if holder is None:
            return
        too_late = holder.give_up is not None and holder.give_up.low <= now.high
        if holder.status == "PENDING" and not holder.runnable(settings, now):
            holder.bury("DEADLINE" if too_late else "EXHAUSTED", now)
        elif too_late and holder.expires and holder.expires.high <= now.low:
            attempt = Attempt(holder.life, "LEASE_EXPIRED", token=holder.token)
            holder.conclude(attempt, settings, now)
            assert holder.status == "DEAD"

    def ready(self, queue: str, now: Window) -> list[Task]:
        """Return the tasks of a queue that are due, in the order in which they became so."""
        due = ((t.due.low, t) for t in self.with_status("PENDING", [queue]) if t.due)
        return [t for due_at, t in sorted(due, key=lambda d: d[0]) if due_at <= now.high]

    def held(self, task_id: UUID, token: UUID) -> Task | None:
        """Return a task if this claim of it is the one that holds it."""
        task = self.tasks.get(task_id)
        return task if task and task.status == "IN_FLIGHT" and task.token == token else None

    def with_status(self, status: str, queues: Iterable[str]) -> list[Task]:
        return [t for t in self.tasks.values() if t.status == status and t.queue in queues]

    def moments(self) -> Iterator[datetime]:
        """Name the times at which something changes by itself."""
        for task in self.tasks.values():
            settings = self.settings(task)
            for window in (task.due, task.give_up, task.expires):
                if window:
                    yield window.high
            for keep in (settings.keep_succeeded, settings.keep_dead):
                if task.ended and keep is not None:
                    yield task.ended.high + keep
                    yield task.ended.high + keep + BATCH_WAIT

    def shift(self, by: timedelta) -> None:
        """Let time pass."""
        for task in self.tasks.values():
            for name in ("due", "give_up", "expires", "ended"):
                if window := getattr(task, name):
                    setattr(task, name, window + -by)
