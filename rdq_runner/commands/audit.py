"""``rdq-runner audit``: who changed what."""

from typing import Final
from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import command
from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.filters import on_clock
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Session
from rdq_runner.commands.times import Moment, past

COLUMNS: Final = (
    "at",
    "actor",
    "action",
    "queue",
    "task_id",
    "redrive_id",
    "affected",
    "reason",
)


@command(None, "audit")
@click.option("--queue", metavar="TEXT", help="Queue.")
@click.option("--task", type=click.UUID, help="Task.")
@click.option("--redrive", type=click.UUID, help="Bulk redrive.")
@click.option("--who", metavar="TEXT", help="Actor.")
@click.option("--action", metavar="TEXT", help="Such as redrive_where, purge, pause_queue.")
@click.option("--since", type=past, metavar="TIME", help="At or after: 2h, '3 days ago'.")
@click.option("--until", type=past, metavar="TIME", help="Before.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
def audit(
    session: Session,
    output: Output,
    queue: str | None,
    task: UUID | None,
    redrive: UUID | None,
    who: str | None,
    action: str | None,
    since: Moment | None,
    until: Moment | None,
    limit: int,
) -> None:
    """List what operators and retention have changed, newest first.

    --wide and --json show what was before and after.

    \b
    Example:
      rdq-runner audit --queue payments --since 2h
    """
    conditions = {
        "queue": queue,
        "task_id": task,
        "redrive_id": redrive,
        "actor": who,
        "action": action,
        "since": since and on_clock(since, session),
        "until": until and on_clock(until, session),
    }
    if queue is not None and not session.rows(statements.known_queue(queue)):
        # "none" would read as "nobody has changed anything".
        raise Failure(
            f"queue {queue!r} does not exist, nor does the audit tell of it",
            Exit.NOTHING,
            "rdq-runner queue list shows the queues.",
        )
    rows = session.rows(statements.audit_log(conditions, limit))
    output.table(rows, COLUMNS, session.now)
