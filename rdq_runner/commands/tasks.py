"""``rdq-runner task``: one task, wherever it is."""

from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import command
from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Session


@click.group()
def task() -> None:
    """Look at one task, or cancel it."""


@command(task, "show")
@click.argument("task_id", type=click.UUID)
def _show(session: Session, output: Output, task_id: UUID) -> None:
    """Show where a task is: its status, its attempts, when it is due, its last failure.

    \b
    Example:
      rdq-runner task show 01980000-0000-7000-8000-000000000000
    """
    show_task(session, output, task_id)


@command(task, "cancel", changes=True)
@click.argument("task_id", type=click.UUID)
@click.option("--reason", help="Why, for the audit.")
def _cancel(session: Session, output: Output, task_id: UUID, reason: str | None) -> None:
    """Make a dead letter of a task that waits or is being worked on.

    A worker that holds it loses its claim.

    \b
    Example:
      rdq-runner task cancel 01980000-0000-7000-8000-000000000000 --reason 'sent twice'
    """
    session.rows(statements.cancel(task_id, reason))
    show_task(session, output, task_id)


def show_task(session: Session, output: Output, task_id: UUID) -> None:
    """Write a task.

    :raises Failure: there is none, or none that the role may see.
    """
    for row in session.rows(statements.task(task_id)):
        output.record(row, session.now)
        return
    raise Failure(
        f"task {task_id} does not exist",
        Exit.NOTHING,
        "It was never submitted here, or it was purged: rdq-runner audit --task TASK_ID.",
    )
