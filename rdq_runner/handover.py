"""For consumers: what fails goes to rdq, with its error and stack, and the consumer goes on.

`guard` hands over the failure of a block, `guarded` that of a call that it has tried a few times.
When they return, the work is done or is a task. If it could be made neither, an exception says so:
then the message must not be acknowledged. What is no `Exception` (KeyboardInterrupt, SystemExit, a
cancellation) is never handed over: somebody wants the process to stop.
"""

import asyncio
import inspect
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, Unpack, cast
from uuid import UUID

import psycopg

from rdq_runner.logs import say
from rdq_runner.outcomes import Failure, describe
from rdq_runner.producers import NewCall, Payload, Submission, TaskOptions
from rdq_runner.sources import AsyncSource, Source, check, opened, opened_async

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_PAUSE_SECONDS: Final = 2.0
"""Between two calls in process. Who wants to wait longer waits better in the database."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A failure that is a task now, of this id."""

    task_id: UUID
    error: Exception


@dataclass(slots=True)
class Guard:
    """What a block's ``as`` gives; `handed` is None unless the block failed and was handed over."""

    handed: Handed | None = None


@contextmanager
def guard(
    connection: Source,
    queue: str,
    handler: str,
    payload: Payload,
    *,
    reraise: bool = False,
    **options: Unpack[TaskOptions],
) -> Iterator[Guard]:
    """Hand over the failure of a ``with`` block to rdq, and go on after the block::

        with guard(pool.connection, "payments", "charge", payload=message.value):
            charge(message.value)
        consumer.commit()

    The block runs once: Python cannot run it again. To try more often in process: `guarded`.

    :param connection: a connection, or what opens one: see `rdq_runner.sources`.
    :param payload: as it is before the block, whatever the block does to it.
    :param reraise: let the block's exception through after the hand-over.
    :param options: of the task, as `submit` takes them; the `error` is the block's.
    :raises TypeError, ValueError: as `submit`, before the block runs.
    :raises psycopg.Error: the failure could not be handed over; it is the ``__context__``.
    """
    check(connection, psycopg.Connection)
    submission = Submission(queue, handler, payload, options)
    state = Guard()
    try:
        yield state
    except Exception as error:
        state.handed = _hand_over(connection, submission, error)
        if reraise:
            raise


@asynccontextmanager
async def guard_async(
    connection: AsyncSource,
    queue: str,
    handler: str,
    payload: Payload,
    *,
    reraise: bool = False,
    **options: Unpack[TaskOptions],
) -> AsyncIterator[Guard]:
    """Do as `guard` does, for an ``async with`` block and an asynchronous connection."""
    check(connection, psycopg.AsyncConnection)
    submission = Submission(queue, handler, payload, options)
    state = Guard()
    try:
        yield state
    except Exception as error:
        state.handed = await _hand_over_async(connection, submission, error)
        if reraise:
            raise


def guarded(
    connection: Source,
    queue: str,
    handler: str,
    *,
    task: Callable[..., NewCall],
    attempts: int = 2,
    delay: float = 0.1,
    reraise: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R | Handed]]:
    """Call a function a few times, and hand over the call to rdq if it still fails::

        @guarded(pool.connection, "payments", "charge", task=lambda order: {"payload": order})
        def charge(order: Order) -> Receipt: ...

    The decorated function returns what the function does, or `Handed`. It must be idempotent, as
    every handler. What a call in process cannot mend is handed over at once: a `Permanent` failure,
    and one whose ``retry_after`` is longer than `LONGEST_PAUSE_SECONDS`.

    :param connection: a connection, or what opens one: see `rdq_runner.sources`.
    :param task: gives, for the call's arguments, the ``payload`` and any of `TaskOptions`. It is
        called before the function, which may change its arguments.
    :param attempts: how often to call the function, at most.
    :param delay: seconds before the second call; twice as long before each later one; jittered.
    :param reraise: raise the last exception after the hand-over, instead of returning `Handed`.
    :raises ValueError: attempts or delay is out of bounds.
    :raises psycopg.Error: the failure could not be handed over; it is the ``__context__``.
    """
    check(connection, psycopg.Connection)
    _Retries(attempts, delay)

    def decorate(function: Callable[P, R]) -> Callable[P, R | Handed]:
        if inspect.iscoroutinefunction(function):
            raise TypeError("guarded calls plain functions: take guarded_async")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R | Handed:
            submission = _submission(queue, handler, task(*args, **kwargs))
            retries = _Retries(attempts, delay)
            while True:
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    pause = retries.pause_after(error)
                    if pause is None:
                        handed = _hand_over(connection, submission, error)
                        if reraise:
                            raise
                        return handed
                time.sleep(pause)

        return call

    return decorate


def guarded_async(
    connection: AsyncSource,
    queue: str,
    handler: str,
    *,
    task: Callable[..., NewCall],
    attempts: int = 2,
    delay: float = 0.1,
    reraise: bool = False,
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Coroutine[Any, Any, R | Handed]]]:
    """Do as `guarded` does, for a coroutine function and an asynchronous connection."""
    check(connection, psycopg.AsyncConnection)
    _Retries(attempts, delay)

    def decorate(
        function: Callable[P, Awaitable[R]],
    ) -> Callable[P, Coroutine[Any, Any, R | Handed]]:
        if not inspect.iscoroutinefunction(function):
            raise TypeError("guarded_async calls coroutine functions: take guarded")

        @wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R | Handed:
            submission = _submission(queue, handler, task(*args, **kwargs))
            retries = _Retries(attempts, delay)
            while True:
                try:
                    return await function(*args, **kwargs)
                except Exception as error:
                    pause = retries.pause_after(error)
                    if pause is None:
                        handed = await _hand_over_async(connection, submission, error)
                        if reraise:
                            raise
                        return handed
                await asyncio.sleep(pause)

        return call

    return decorate


class _Retries:
    """How often a call may be tried again in process, and after how long."""

    def __init__(self, attempts: int, delay: float) -> None:
        if attempts < 1:
            raise ValueError(f"attempts is {attempts}: give at least 1")
        if not 0 <= delay <= LONGEST_PAUSE_SECONDS:
            raise ValueError(f"delay is {delay}: give 0 to {LONGEST_PAUSE_SECONDS:g} seconds")
        self._left = attempts
        self._delay = delay

    def pause_after(self, error: Exception) -> float | None:
        """Return the seconds to wait before the next call; None to make no more of them."""
        self._left -= 1
        failure = describe(error)
        least = failure.retry_after or 0.0
        if not self._left or failure.error_class == "PERMANENT" or least > LONGEST_PAUSE_SECONDS:
            return None
        longest, self._delay = self._delay, min(2 * self._delay, LONGEST_PAUSE_SECONDS)
        return max(least, longest * random.uniform(0.5, 1))


def _submission(queue: str, handler: str, call: NewCall) -> Submission:
    options = {name: value for name, value in call.items() if name != "payload"}
    return Submission(queue, handler, call["payload"], cast(TaskOptions, options))


def _hand_over(connection: Source, submission: Submission, error: Exception) -> Handed:
    failure = submission.brought_by(error)
    with opened(connection) as own:
        task_id = submission.send(own)
    _say_handed(submission, task_id, failure)
    return Handed(task_id, error)


async def _hand_over_async(
    connection: AsyncSource, submission: Submission, error: Exception
) -> Handed:
    failure = submission.brought_by(error)
    async with opened_async(connection) as own:
        task_id = await submission.send_async(own)
    _say_handed(submission, task_id, failure)
    return Handed(task_id, error)


def _say_handed(submission: Submission, task_id: UUID, failure: Failure) -> None:
    say(
        logging.WARNING,
        "failure handed over",
        task=task_id,
        queue=submission.queue,
        handler=submission.handler,
        error_type=failure.type,
        error_class=failure.error_class,
    )
