"""Submits tasks on a connection of the application's own, inside its own transaction.

Nothing here commits: a task is there when the caller's transaction is, with whatever else that
transaction did. Every option of ``rdq.submit`` has its name. Errors are those of psycopg; a refusal
of rdq has an SQLSTATE of class RD, and its message says what to do.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Required, TypedDict, Unpack
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from rdq_runner import storable
from rdq_runner.outcomes import Failure, describe
from rdq_runner.sql import SUBMIT, SUBMIT_MANY

Payload = bytes | str | Mapping[str, Any] | Sequence[Any] | int | float | bool
"""Bytes, or text, or what `json.dumps` takes; each is kept with the content type that it has."""

_JSON: Final = "application/json"


class TaskOptions(TypedDict, total=False):
    """What a submit may say of a task. An option that is None is one that is not given.

    - `headers`: handed to the handler, as a ``traceparent`` is.
    - `run_at`: the earliest start; `give_up_at`: the deadline. Both with a time zone.
    - `max_attempts`: instead of the queue's.
    - `dedupe_key`: joins the live task that has it, and returns that task's id.
    - `handler_version`: of the code that is to run it.
    - `error`: the failure that brought the work here: an exception, or an object as ``rdq.submit``
      takes it. It becomes attempt 1 of the history, and spends nothing of the budget.
    - `task_id`: again in the same queue it returns the same id and changes nothing, so a submit
      whose commit is in doubt is simply sent again.
    - `content_type`: instead of the payload's own.
    """

    headers: Mapping[str, str] | None
    run_at: datetime | None
    give_up_at: datetime | None
    max_attempts: int | None
    dedupe_key: str | None
    handler_version: str | None
    error: BaseException | Mapping[str, Any] | None
    task_id: UUID | str | None
    content_type: str | None


class NewCall(TaskOptions):
    """A task whose queue and handler are said elsewhere."""

    payload: Required[Payload]


class NewTask(NewCall):
    """One task of a `submit_many`."""

    handler: Required[str]


def submit(
    connection: psycopg.Connection[Any],
    queue: str,
    handler: str,
    payload: Payload,
    **options: Unpack[TaskOptions],
) -> UUID:
    """Submit a task in the connection's transaction, and return its id.

    :param options: see `TaskOptions`.
    :raises TypeError: an option does not exist, or the payload has no form in JSON.
    :raises ValueError: a time has no time zone, or the payload has a NaN.
    :raises psycopg.Error: the database refuses it, or cannot be reached.
    """
    return Submission(queue, handler, payload, options).send(connection)


async def submit_async(
    connection: psycopg.AsyncConnection[Any],
    queue: str,
    handler: str,
    payload: Payload,
    **options: Unpack[TaskOptions],
) -> UUID:
    """Do as `submit` does, on an asynchronous connection."""
    return await Submission(queue, handler, payload, options).send_async(connection)


def submit_many(
    connection: psycopg.Connection[Any], queue: str, tasks: Iterable[NewTask]
) -> list[UUID]:
    """Submit tasks to one queue in one round trip: all of them or none. Return the ids in order.

    :param tasks: each with a `handler`, a `payload` and the options of `TaskOptions`.
    :raises TypeError, ValueError: as `submit`; the message names the task: ``tasks[3]``.
    :raises psycopg.Error: as `submit`; the message names the task.
    """
    parameters = _submit_many_parameters(queue, tasks)
    return _all(_cursor(connection).execute(SUBMIT_MANY, parameters).fetchall())


async def submit_many_async(
    connection: psycopg.AsyncConnection[Any], queue: str, tasks: Iterable[NewTask]
) -> list[UUID]:
    """Do as `submit_many` does, on an asynchronous connection."""
    parameters = _submit_many_parameters(queue, tasks)
    cursor = await _async_cursor(connection).execute(SUBMIT_MANY, parameters)
    return _all(await cursor.fetchall())


class Submission:
    """A submit that is ready to be sent: checked, and independent of what it was made from.

    :raises TypeError, ValueError: as `submit`.
    """

    def __init__(self, queue: str, handler: str, payload: Payload, options: TaskOptions) -> None:
        self.queue = queue
        self.handler = handler
        fields = _fields(handler=handler, payload=payload, **options)
        self._parameters = {
            "queue": queue,
            **fields,
            "headers": _written(fields["headers"]),
            "error": _written(fields["error"]),
        }

    def brought_by(self, error: BaseException) -> Failure:
        """Note the failure that brings the work here, and return its description."""
        failure = describe(error)
        self._parameters["error"] = _written(failure.document())
        return failure

    def send(self, connection: psycopg.Connection[Any]) -> UUID:
        """Submit in the connection's transaction; return the task's id."""
        return _one(_cursor(connection).execute(SUBMIT, self._parameters).fetchall())

    async def send_async(self, connection: psycopg.AsyncConnection[Any]) -> UUID:
        """Submit in the connection's transaction; return the task's id."""
        cursor = await _async_cursor(connection).execute(SUBMIT, self._parameters)
        return _one(await cursor.fetchall())


# Cursors of our own: the connection's may have any row factory, and another style of parameters.
def _cursor(connection: psycopg.Connection[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
    if not isinstance(connection, psycopg.Connection):
        raise TypeError(f"connection is no psycopg.Connection but a {type(connection).__name__}")
    return psycopg.Cursor(connection, row_factory=tuple_row)


def _async_cursor(
    connection: psycopg.AsyncConnection[Any],
) -> psycopg.AsyncCursor[tuple[Any, ...]]:
    if not isinstance(connection, psycopg.AsyncConnection):
        name = type(connection).__name__
        raise TypeError(f"connection is no psycopg.AsyncConnection but a {name}")
    return psycopg.AsyncCursor(connection, row_factory=tuple_row)


def _one(rows: list[tuple[Any, ...]]) -> UUID:
    [task_id] = _all(rows)
    return task_id


def _all(rows: list[tuple[Any, ...]]) -> list[UUID]:
    # The connection may load uuid as something else.
    return [UUID(str(task_id)) for (task_id,) in rows]


def _submit_many_parameters(queue: str, tasks: Iterable[NewTask]) -> dict[str, object]:
    items = []
    for index, task in enumerate(tasks):
        try:
            fields = _fields(**task)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"tasks[{index}]: {error}") from error
        fields["payload_base64"] = b64encode(fields.pop("payload")).decode()
        items.append({name: value for name, value in fields.items() if value is not None})
    return {"queue": queue, "tasks": json.dumps(items)}


def _fields(
    *,
    handler: str,
    payload: Payload,
    headers: Mapping[str, str] | None = None,
    run_at: datetime | None = None,
    give_up_at: datetime | None = None,
    max_attempts: int | None = None,
    dedupe_key: str | None = None,
    handler_version: str | None = None,
    error: BaseException | Mapping[str, Any] | None = None,
    task_id: UUID | str | None = None,
    content_type: str | None = None,
) -> dict[str, Any]:
    """Return the parameters of ``rdq.submit``: the payload as bytes, all others as JSON takes them.

    JSON travels in ASCII, so the connection's encoding does not matter to it.
    """
    content, natural_type = _encoded(payload)
    return {
        "handler": handler,
        "payload": content,
        "content_type": natural_type if content_type is None else content_type,
        "headers": None if headers is None else dict(headers),
        "run_at": _time("run_at", run_at),
        "give_up_at": _time("give_up_at", give_up_at),
        "max_attempts": max_attempts,
        "dedupe_key": dedupe_key,
        "handler_version": handler_version,
        "error": _failure(error),
        "task_id": None if task_id is None else str(task_id),
    }


def _encoded(payload: Payload) -> tuple[bytes, str]:
    """Return the bytes of a payload and their content type.

    :raises TypeError: it has no form in JSON. None is refused too: somebody forgot the payload.
    :raises ValueError: it has a NaN or an infinity, or text that UTF-8 cannot hold.
    """
    match payload:
        case bytes() | bytearray() | memoryview():
            return bytes(payload), "application/octet-stream"
        case str():
            return payload.encode(), "text/plain; charset=utf-8"
        case None:
            raise TypeError("payload is None: give b'' if the handler needs none")
    try:
        return json.dumps(payload, ensure_ascii=False, allow_nan=False).encode(), _JSON
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold as an escape
        return json.dumps(payload, allow_nan=False).encode(), _JSON


def _time(name: str, value: datetime | None) -> str | None:
    # The session's time zone would decide what it means: perhaps another one tomorrow.
    if value is not None and value.utcoffset() is None:
        raise ValueError(f"{name} has no time zone: give an aware datetime")
    return None if value is None else value.isoformat()


def _failure(error: BaseException | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Describe a failure; texts become storable and are cut here, so that none is ever refused."""
    if isinstance(error, BaseException):
        return describe(error).document()
    if error is None:
        return None
    return {name: _scrubbed(name, value) for name, value in error.items()}


def _scrubbed(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return _time(f"error.{name}", value)
    if not isinstance(value, str):
        return storable.document(value)
    if name == "stack":
        return storable.stack(value.splitlines(keepends=True))
    return storable.text(value)


def _written(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value)
