"""Every SQL text of the commands: calls of the public functions, looks at the public views.

An argument that is None is left out of the text: then the function's own default holds, and what
``--show-sql`` prints is what a person would type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from uuid import UUID

from psycopg.types.json import Jsonb

from rdq_runner.storable import Json

Arguments = Mapping[str, object]


class Null(Enum):
    """An explicit null, where that is not the default."""

    NULL = "null"


NULL: Final = Null.NULL


@dataclass(frozen=True)
class Statement:
    """A text with placeholders such as ``%(queue)s``, and what they stand for."""

    text: str
    arguments: Arguments = field(default_factory=dict)


NOW: Final = Statement("select clock_timestamp() as now")


def settings(actor: str | None) -> Statement:
    """Return what holds for one transaction: behind a pooler a session is anybody's.

    :param actor: whom the audit names.
    """
    set_timezone = "select set_config('timezone', 'UTC', true)"
    if actor is None:
        return Statement(set_timezone)
    return Statement(f"{set_timezone}, set_config('rdq.actor', %(actor)s, true)", {"actor": actor})


def set_actor(actor: str) -> Statement:
    """Return what a person would type instead: it holds for the session."""
    return Statement("set rdq.actor = %(actor)s", {"actor": actor})


def queues() -> Statement:
    """Return how many tasks of each queue are where."""
    return Statement("select * from rdq.queue_stats order by queue")


def queue(queue: str) -> Statement:
    """Return the settings of a queue, and how many of its tasks are where."""
    return Statement(
        "select * from rdq.queues join rdq.queue_stats using (queue) where queue = %(queue)s",
        {"queue": queue},
    )


def create_queue(queue: str, settings: Mapping[str, Json]) -> Statement:
    """Create a queue, or apply settings to it."""
    given = Jsonb(dict(settings)) if settings else None
    return _do("create_queue", {"queue": queue, "settings": given})


def alter_queue(queue: str, settings: Mapping[str, Json]) -> Statement:
    """Change settings of a queue; None puts one back to its default."""
    return _do("alter_queue", {"queue": queue, "settings": Jsonb(dict(settings))})


def pause_queue(queue: str, reason: str | None) -> Statement:
    """Stop claims from a queue."""
    return _do("pause_queue", {"queue": queue, "reason": reason})


def resume_queue(queue: str) -> Statement:
    """Let workers claim from a queue again."""
    return _do("resume_queue", {"queue": queue})


def drop_queue(queue: str) -> Statement:
    """Remove an empty queue."""
    return _do("drop_queue", {"queue": queue})


def dead_letters(filters: Arguments, max_rows: int, after: str | None) -> Statement:
    """Return a page of dead letters."""
    return _rows("dead_letters", {**filters, "max_rows": max_rows, "after": after})


def dead_letter_groups(filters: Arguments, max_rows: int) -> Statement:
    """Return the dead letters by cause."""
    return _rows("dead_letter_groups", {**filters, "max_rows": max_rows})


def dead_letter_timeline(filters: Arguments, bucket: object, max_rows: int) -> Statement:
    """Return the deaths by time and cause."""
    return _rows("dead_letter_timeline", {**filters, "bucket": bucket, "max_rows": max_rows})


def dead_letter(task_id: UUID) -> Statement:
    """Return a dead letter as lists show it."""
    return Statement("select * from rdq.dead_letters where task_id = %(id)s", {"id": task_id})


def envelope(task_id: UUID) -> Statement:
    """Return a whole task as one JSON object."""
    return Statement(
        "select rdq.envelope(task_id => %(task_id)s) as envelope", {"task_id": task_id}
    )


def history(task_id: UUID) -> Statement:
    """Return every attempt of a task."""
    return _rows("history", {"task_id": task_id})


def redrive(task_id: UUID, changes: Arguments) -> Statement:
    """Put one dead letter back."""
    return _rows("redrive", {"task_id": task_id, **changes})


def redrive_where(filters: Arguments, pace: Arguments, dry_run: bool) -> Statement:
    """Begin a bulk redrive, or say what it would do."""
    return _rows("redrive_where", {**filters, **pace, "dry_run": dry_run or None})


def purge(task_id: UUID, reason: str | None) -> Statement:
    """Delete one task."""
    return _do("purge", {"task_id": task_id, "reason": reason})


def purge_where(
    filters: Arguments, reason: str | None, max_tasks: int | None, dry_run: bool
) -> Statement:
    """Delete a batch of dead letters, or count them."""
    how = {"reason": reason, "max_tasks": max_tasks, "dry_run": dry_run or None}
    return _rows("purge_where", {**filters, **how})


def redrives(states: list[str], max_rows: int) -> Statement:
    """Return the bulk redrives, the newest first."""
    conditions = ["state = any (%(states)s)"] if states else []
    values: Arguments = {"states": states, "max_rows": max_rows}
    return _look("redrives", conditions, values, order="began_at desc")


def redrive_status(redrive_id: UUID) -> Statement:
    """Return one bulk redrive."""
    return _rows("redrive_status", {"redrive_id": redrive_id})


def pause_redrive(redrive_id: UUID, reason: str | None) -> Statement:
    """Stop a bulk redrive."""
    return _do("pause_redrive", {"redrive_id": redrive_id, "reason": reason})


def resume_redrive(redrive_id: UUID, reason: str | None) -> Statement:
    """Let a bulk redrive go on."""
    return _do("resume_redrive", {"redrive_id": redrive_id, "reason": reason})


def cancel_redrive(redrive_id: UUID, reason: str | None) -> Statement:
    """End a bulk redrive."""
    return _do("cancel_redrive", {"redrive_id": redrive_id, "reason": reason})


def task(task_id: UUID) -> Statement:
    """Return where a task is."""
    return Statement("select * from rdq.tasks where task_id = %(id)s", {"id": task_id})


def cancel(task_id: UUID, reason: str | None) -> Statement:
    """End a task that is live."""
    return _do("cancel", {"task_id": task_id, "reason": reason})


def cancel_where(filters: Arguments, dry_run: bool) -> Statement:
    """Cancel a batch of live tasks, or count them."""
    return _rows("cancel_where", {**filters, "dry_run": dry_run or None})


def known_queue(queue: str) -> Statement:
    """Return a row if there is such a queue, or was one of which the audit tells."""
    return Statement(
        "select 1 as known where exists (select from rdq.queues where queue = %(queue)s)"
        " or exists (select from rdq.audit_log where queue = %(queue)s)",
        {"queue": queue},
    )


def runners() -> Statement:
    """Return the runners, those that live first."""
    return Statement("select * from rdq.runners order by alive desc, runner")


def audit_log(conditions: Arguments, max_rows: int) -> Statement:
    """Return what was changed, the newest first.

    :param conditions: what columns must be; since and until bound the column at.
    """
    bounds = {"since": "at >= %(since)s", "until": "at < %(until)s"}
    given = {name: value for name, value in conditions.items() if value is not None}
    texts = [bounds.get(name, f"{name} = %({name})s") for name in given]
    return _look("audit_log", texts, {**given, "max_rows": max_rows}, order="id desc")


def edits(task_id: UUID, audit_id: int | None, max_rows: int) -> Statement:
    """Return what edits of a task have replaced, the newest first.

    :param audit_id: of the only one that is wanted.
    """
    conditions = [
        "task_id = %(task_id)s",
        "action = 'redrive'",
        "before ?| '{payload,content_type,headers}'",
    ]
    values: dict[str, object] = {"task_id": task_id, "max_rows": max_rows}
    if audit_id is not None:
        conditions.append("id = %(audit_id)s")
        values["audit_id"] = audit_id
    return _look("audit_log", conditions, values, order="id desc")


def _rows(function: str, arguments: Arguments) -> Statement:
    return _call(f"select * from rdq.{function}", arguments)


def _do(function: str, arguments: Arguments) -> Statement:
    return _call(f"select rdq.{function}", arguments)


def _call(beginning: str, arguments: Arguments) -> Statement:
    given = {name: value for name, value in arguments.items() if value is not None}
    listed = ", ".join(f"{name} => %({name})s" for name in given)
    return Statement(f"{beginning}({listed})", given)


def _look(view: str, conditions: list[str], values: Arguments, order: str) -> Statement:
    where = " where " + " and ".join(conditions) if conditions else ""
    return Statement(f"select * from rdq.{view}{where} order by {order} limit %(max_rows)s", values)
