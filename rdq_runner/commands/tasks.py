"""``rdq-runner task``: one task, wherever it is."""

from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.batches import in_batches
from rdq_runner.commands.command import ask, command
from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.filters import on_clock
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Session
from rdq_runner.commands.times import Moment, past


@click.group()
def task() -> None:
    """Look at one task, or cancel tasks."""


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
@click.argument("task_id", type=click.UUID, required=False)
@click.option("--queue", metavar="TEXT", help="Queue.")
@click.option("--handler", metavar="TEXT", help="Handler.")
@click.option("--status", type=click.Choice(["PENDING", "IN_FLIGHT"]), help="Waits, or runs.")
@click.option("--since", type=past, metavar="TIME", help="Submitted at or after: 2h.")
@click.option("--until", type=past, metavar="TIME", help="Submitted before.")
@click.option("--dry-run", is_flag=True, help="Show how many would be cancelled.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", help="Why, for the audit.")
def _cancel(
    session: Session,
    output: Output,
    task_id: UUID | None,
    queue: str | None,
    handler: str | None,
    status: str | None,
    since: Moment | None,
    until: Moment | None,
    dry_run: bool,
    yes: bool,
    reason: str | None,
) -> Exit | None:
    """Make dead letters of tasks that wait or are being worked on: of one, or of many.

    A worker that holds such a task loses its claim. With a filter it shows how many match, and
    asks; what is submitted after that is not touched.

    \b
    Example:
      rdq-runner task cancel 01980000-0000-7000-8000-000000000000 --reason 'sent twice'
      rdq-runner task cancel --queue mails --handler newsletter --reason 'wrong text'
    """
    given = (queue, handler, status, since, until)
    if (task_id is not None) == any(value is not None for value in given):
        raise click.UsageError("give a task, or a filter such as --queue")
    if task_id is not None:
        if dry_run:
            raise click.UsageError("one task has no dry run")
        session.rows(statements.cancel(task_id, reason))
        show_task(session, output, task_id)
        return None
    filters = {
        "queue": queue,
        "handler": handler,
        "status": status,
        "since": since and on_clock(since, session),
        "until": on_clock(until or Moment(), session),
    }
    row = session.row(statements.cancel_where(filters, dry_run=True))
    count = row["remaining"]
    if dry_run or not count:
        output.record(row, session.now)
        return Exit.WOULD_CHANGE if count else Exit.NOTHING
    if not ask(f"Cancel {_counted(count)}?", yes=yes):
        return Exit.REFUSED
    statement = statements.cancel_where({**filters, "reason": reason}, dry_run=False)
    return in_batches(
        session, output, lambda _: session.row(statement), "cancelled", count, _counted
    )


def _counted(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


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
