"""``rdq-runner dlq purge``: dead letters are deleted, with payload and history."""

from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.batches import in_batches
from rdq_runner.commands.command import ask, command
from rdq_runner.commands.exits import Exit
from rdq_runner.commands.filters import Filter, GivenFilter, filter_options
from rdq_runner.commands.output import Output
from rdq_runner.commands.previews import (
    TRIES,
    MoreMatch,
    Preview,
    bounded,
    counted,
    refuse_more,
)
from rdq_runner.commands.session import Row, Session

_GROUPS = 100


@command(None, "purge", changes=True)
@click.argument("task_id", type=click.UUID, required=False)
@filter_options
@click.option("--all", "everything", is_flag=True, help="Whatever you may purge.")
@click.option("--batch", type=click.IntRange(1, 10000), help="Tasks in a transaction.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", help="Why, for the audit.")
def purge(
    session: Session,
    output: Output,
    task_id: UUID | None,
    given: GivenFilter,
    everything: bool,
    batch: int | None,
    dry_run: bool,
    yes: bool,
    reason: str | None,
) -> Exit | None:
    """Delete one task that has ended, or all dead letters that match a filter.

    With a filter it shows what matches and asks; then it deletes batch by batch, each in a
    transaction of its own, until nothing of that is left. What dies meanwhile is not touched.

    \b
    Example:
      rdq-runner dlq purge 01980000-0000-7000-8000-000000000000 --reason 'a test'
      rdq-runner dlq purge --queue payments --fingerprint 0123456789abcdef --dry-run
    """
    if task_id is not None:
        if given or everything or dry_run or batch:
            raise click.UsageError("give a task or a filter; --dry-run and --batch are of a filter")
        session.rows(statements.purge(task_id, reason))
        if output.is_table:
            click.echo(f"task {task_id} is purged")
        else:
            output.record({"task_id": task_id}, session.now)
        return None
    require_filter(given, everything)
    filters = given.on(session)
    for _ in range(TRIES):
        preview = _preview(session, filters)
        if dry_run:
            return show_dry_run(session, output, preview)
        preview.show(session, output, err=True)
        if not preview.matched:
            return Exit.NOTHING
        if not ask(f"Delete {counted(preview.matched)}, with payloads and histories?", yes=yes):
            return Exit.REFUSED
        try:
            return _purge_batches(session, output, preview, reason, batch)
        except MoreMatch:
            click.echo("more match now than were shown; nothing was changed", err=True)
    return Exit.REFUSED


def require_filter(given: GivenFilter, everything: bool) -> None:
    """Refuse to act on everything unless that is said.

    :raises click.UsageError: it is not, or a filter is given too.
    """
    if bool(given) == everything:
        raise click.UsageError("give a task, or a filter such as --queue; --all means everything")


def show_dry_run(session: Session, output: Output, preview: Preview) -> Exit:
    """Write what would be done."""
    if output.is_table:
        preview.show(session, output, err=False)
    else:
        output.record(preview.row, session.now)
    return Exit.WOULD_CHANGE if preview.matched else Exit.NOTHING


def _preview(session: Session, filters: Filter) -> Preview:
    until_now = bounded(filters, session)
    row = session.row(statements.purge_where(until_now.arguments, None, None, dry_run=True))
    groups = session.rows(statements.dead_letter_groups(until_now.arguments, _GROUPS))
    return Preview(until_now, row["remaining"], groups, {**row, "groups": groups})


def _purge_batches(
    session: Session, output: Output, preview: Preview, reason: str | None, batch: int | None
) -> Exit:
    """Delete what was shown.

    :raises MoreMatch: more matches; nothing was deleted.
    """
    statement = statements.purge_where(preview.filters.arguments, reason, batch, dry_run=False)

    def step(purged: int) -> Row:
        with session.transaction():
            row = session.row(statement)
            refuse_more(purged + row["purged"] + row["remaining"], preview.matched)
        return row

    return in_batches(session, output, step, "purged", preview.matched, counted)
