"""A task, as its handler sees it."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rdq_runner.outcomes import Cancelled, MalformedPayload
from rdq_runner.rows import Claim


class Cancellation:
    """A flag that somebody may wait for, and that does something when it is set.

    There is one for each task, and hardly any is ever looked at: so it is made of little.
    """

    __slots__ = ("_actions", "_event", "_is_set", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._actions: list[Callable[[], object]] = []
        self._event: threading.Event | None = None

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, `timeout` seconds at most; return whether it is."""
        with self._lock:
            if self._is_set:
                return True
            event = self._event = self._event or threading.Event()
        return event.wait(timeout)

    def then(self, act: Callable[[], object]) -> None:
        """Call `act` once it is set, at once if it is; in the thread that sets it, so briefly."""
        with self._lock:
            if not self._is_set:
                self._actions.append(act)
                return
        act()

    def set(self) -> None:
        """Set it, and do what was to follow."""
        with self._lock:
            self._is_set = True
            actions, self._actions = self._actions, []
        if self._event:
            self._event.set()
        for act in actions:
            act()


@dataclass(frozen=True, kw_only=True)
class Task:
    """One attempt at a task. Its `repr` leaves out what may be secret: payload and headers.

    `attempt_no` counts the attempts of the whole history, `attempt_count` those of this life (this
    one included), `redrive_count` the lives before.
    """

    id: UUID
    queue: str
    handler: str
    payload: bytes = field(repr=False)
    content_type: str = "text/plain"
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    handler_version: str | None = None
    attempt_no: int = 1
    attempt_count: int = 1
    redrive_count: int = 0
    created_at: datetime | None = None
    give_up_at: datetime | None = None
    cancellation: Cancellation = field(default_factory=Cancellation, repr=False, compare=False)

    @classmethod
    def of(cls, claim: Claim) -> "Task":
        """Return the task of a claim."""
        task = cls.__new__(cls)
        # A frozen dataclass sets field by field, which takes three times as long.
        vars(task).update(
            id=claim.task_id,
            queue=claim.queue,
            handler=claim.handler,
            payload=claim.payload,
            content_type=claim.content_type,
            headers=claim.headers or {},
            handler_version=claim.handler_version,
            attempt_no=claim.attempt_no,
            attempt_count=claim.attempt_count,
            redrive_count=claim.redrive_count,
            created_at=claim.created_at,
            give_up_at=claim.give_up_at,
            cancellation=Cancellation(),
        )
        return task

    @property
    def text(self) -> str:
        """The payload as UTF-8.

        :raises MalformedPayload: it is not; the task is dead at once.
        """
        try:
            return self.payload.decode()
        except UnicodeDecodeError as error:
            raise MalformedPayload(f"the payload is not UTF-8: {error}") from error

    def json(self) -> Any:
        """Return the value of the payload, which is JSON.

        :raises MalformedPayload: it is not, or is nested too deeply; the task is dead at once.
        """
        try:
            return json.loads(self.payload)
        except (ValueError, RecursionError) as error:
            raise MalformedPayload(f"the payload is not JSON: {error}") from error

    @property
    def cancelled(self) -> bool:
        """Whether to stop: shutdown, timeout, or somebody else may hold the task by now.

        A handler that stops because of it raises `Cancelled`.
        """
        return self.cancellation.is_set()

    def heartbeat(self) -> None:
        """Say that work goes on: a place where the handler can stop if it is cancelled.

        The lease needs no such call: the runner renews it for as long as the handler runs.

        :raises Cancelled: it is; a handler that lets this pass hands its task back, at no cost.
        """
        if self.cancelled:
            raise Cancelled("the task is cancelled")

    async def until_cancelled(self) -> None:
        """Wait until it is cancelled, in an async handler."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(done.set)

        self.cancellation.then(tell)
        await done.wait()
