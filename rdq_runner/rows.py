"""What the functions of the schema ``rdq`` return, a row each.

What comes with each task is a tuple: it is made in an eighth of the time of a frozen dataclass.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID


class Claim(NamedTuple):
    """A task that this process holds, by its token, until the lease ends."""

    task_id: UUID
    claim_token: UUID
    queue: str
    handler: str
    handler_version: str | None
    payload: bytes
    content_type: str
    headers: dict[str, str] | None
    attempt_no: int
    attempt_count: int
    redrive_count: int
    created_at: datetime
    give_up_at: datetime | None
    lease_seconds: float
    waited_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A handler that is an HTTP callback. Its `repr` leaves out what may be secret.

    :param timeout: for the whole exchange.
    :param secret: a reference ``env:NAME``; None where requests are not signed.
    :param response_rules: ``{"status", "class"}``, what a status means at this endpoint.
    """

    queue: str
    handler: str
    url: str = field(repr=False)
    timeout: timedelta = timedelta(seconds=30)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    secret: str | None = None
    response_rules: list[dict[str, str]] = field(default_factory=list)


class Answer(NamedTuple):
    """Where a task is after a report; `stale` if the claim was no longer the one that holds it."""

    status: str | None
    next_attempt_at: datetime | None
    dead_reason: str | None
    stale: bool
    error_class: str | None = None
    retry_in: float | None = None
    """Seconds, at the moment of the answer."""


@dataclass(frozen=True, slots=True)
class Tick:
    """How many tasks a step of what is periodic has moved.

    :param problems: ``part: message`` of each part that failed, None if none did.
    """

    reclaimed: int
    given_up: int
    redriven: int
    purged: int
    problems: list[str] | None = None

    @property
    def moved(self) -> dict[str, int]:
        """The counts, by what was done to the tasks."""
        return {
            "reclaimed": self.reclaimed,
            "given_up": self.given_up,
            "redriven": self.redriven,
            "purged": self.purged,
        }


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many tasks of a queue are where, and how long the oldest have been there.

    :param stats_age_seconds: how long ago due, scheduled and dead were counted.
    :param recount_due: counting takes long, and it is time to do it again.
    """

    queue: str
    paused: bool
    due: int
    scheduled: int
    in_flight: int
    expired: int
    dead: int
    oldest_due_age_seconds: float
    oldest_dead_age_seconds: float
    runners: int
    stats_age_seconds: float
    recount_due: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or worth knowing.

    :param severity: ``error``, ``warning`` or ``info``.
    :param advice: a statement or a command that can be pasted, with a remark.
    """

    severity: str
    subject: str
    finding: str
    advice: str
