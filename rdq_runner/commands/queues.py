"""``rdq-runner queue``: the queues, their settings, what is in them."""

import json
from math import isfinite
from typing import Final

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import command
from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Session
from rdq_runner.storable import Json

COLUMNS: Final = (
    "queue",
    "paused",
    "due",
    "scheduled",
    "in_flight",
    "expired",
    "dead",
    "oldest_due_age",
    "oldest_dead_age",
)

_queue = click.argument("queue")
_settings = click.argument("settings", nargs=-1, metavar="[SETTING=VALUE]...")


@click.group()
def queue() -> None:
    """Look at queues, change their settings, pause them."""


@command(queue, "list")
def _list(session: Session, output: Output) -> None:
    """List the queues: how many tasks of each are due, scheduled, in flight and dead.

    \b
    Example:
      rdq-runner queue list
    """
    output.table(session.rows(statements.queues()), COLUMNS, session.now)


@command(queue, "show")
@_queue
def _show(session: Session, output: Output, queue: str) -> None:
    """Show one queue: its settings, whether and why it is paused, what is in it.

    \b
    Example:
      rdq-runner queue show payments
    """
    show_queue(session, output, queue)


@command(queue, "create", changes=True)
@_queue
@_settings
def _create(session: Session, output: Output, queue: str, settings: tuple[str, ...]) -> None:
    """Create a queue, or apply settings to the one that exists.

    Values are JSON or plain text; "rdq-runner queue show" lists the settings.

    \b
    Example:
      rdq-runner queue create payments max_attempts=6 backoff_base='30 seconds'
    """
    session.rows(statements.create_queue(queue, _read(settings)))
    show_queue(session, output, queue)


@command(queue, "alter", changes=True)
@_queue
@_settings
def _alter(session: Session, output: Output, queue: str, settings: tuple[str, ...]) -> None:
    """Change settings of a queue, for the tasks that are already in it too.

    The value null puts a setting back to its default.

    \b
    Example:
      rdq-runner queue alter payments lease='5 minutes' max_attempts=null
    """
    if not settings:
        raise click.UsageError("give a setting, such as max_attempts=6")
    session.rows(statements.alter_queue(queue, _read(settings)))
    show_queue(session, output, queue)


@command(queue, "pause", changes=True)
@_queue
@click.option("--reason", help="Why, for those who find it paused.")
def _pause(session: Session, output: Output, queue: str, reason: str | None) -> None:
    """Stop claims from a queue; what is running goes on, and submits are taken.

    \b
    Example:
      rdq-runner queue pause payments --reason 'the bank is down'
    """
    session.rows(statements.pause_queue(queue, reason))
    show_queue(session, output, queue)


@command(queue, "resume", changes=True)
@_queue
def _resume(session: Session, output: Output, queue: str) -> None:
    """Let workers claim from a paused queue again.

    \b
    Example:
      rdq-runner queue resume payments
    """
    session.rows(statements.resume_queue(queue))
    show_queue(session, output, queue)


@command(queue, "drop", changes=True)
@_queue
def _drop(session: Session, output: Output, queue: str) -> None:
    """Remove a queue in which nothing is, neither live nor ended.

    \b
    Example:
      rdq-runner queue drop payments
    """
    session.rows(statements.drop_queue(queue))
    if output.is_table:
        click.echo(f"queue {queue} is dropped")
    else:
        output.record({"queue": queue}, session.now)


def show_queue(session: Session, output: Output, queue: str) -> None:
    """Write a queue.

    :raises Failure: there is none of that name, or none that the role may see.
    """
    for row in session.rows(statements.queue(queue)):
        output.record(row, session.now)
        return
    raise Failure(
        f"queue {queue!r} does not exist",
        Exit.NOTHING,
        "rdq-runner queue list shows those that you may see.",
    )


def _read(settings: tuple[str, ...]) -> dict[str, Json]:
    """Read settings: ``max_attempts=6``, ``lease='5 minutes'``, ``ladder='[10, 60]'``."""
    read: dict[str, Json] = {}
    for setting in settings:
        name, given, text = setting.partition("=")
        if not given:
            raise click.UsageError(f"{setting!r} is no setting: give NAME=VALUE")
        if name in read:
            raise click.UsageError(f"setting {name!r} is given twice")
        read[name] = _value(text)
    return read


def _value(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, float) and not isfinite(value) else value
