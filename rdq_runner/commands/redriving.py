"""``rdq-runner dlq redrive``: dead letters go back to work, one or many."""

from collections.abc import Mapping
from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import ask, command
from rdq_runner.commands.edits import (
    Edit,
    Pace,
    Target,
    edit_options,
    pace_options,
    target_options,
)
from rdq_runner.commands.exits import Exit
from rdq_runner.commands.filters import Filter, GivenFilter, filter_options
from rdq_runner.commands.output import Output
from rdq_runner.commands.previews import TRIES, MoreMatch, Preview, bounded, counted, refuse_more
from rdq_runner.commands.purging import require_filter, show_dry_run
from rdq_runner.commands.redrives import interval_option, show_redrive
from rdq_runner.commands.session import Session
from rdq_runner.commands.watching import watch


@command(None, "redrive", changes=True)
@click.argument("task_id", type=click.UUID, required=False)
@filter_options
@click.option("--all", "everything", is_flag=True, help="Whatever you may redrive.")
@pace_options
@click.option("--dry-run", is_flag=True, help="Show what would be redriven.")
@click.option("--watch", "watching", is_flag=True, help="Stay until it is over.")
@interval_option
@edit_options
@target_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", help="Why, for the audit.")
def redrive_dead_letters(
    session: Session,
    output: Output,
    task_id: UUID | None,
    given: GivenFilter,
    everything: bool,
    pace: Pace,
    dry_run: bool,
    watching: bool,
    interval: float,
    edit: Edit,
    target: Target,
    yes: bool,
    reason: str | None,
) -> Exit | None:
    """Put dead letters back to work with a fresh budget: one, possibly edited, or many.

    One task: --payload and the like change it; the audit keeps what it was. With a filter it
    shows what matches, by group and with warnings, and asks; what dies meanwhile is not touched.
    --canary sends a few first and the rest only if they succeed, --per-second and --spread
    protect what has just recovered, --halt-at stops it when too many die again. --to-queue,
    --to-handler and --to-version send one or many elsewhere.

    \b
    Example:
      rdq-runner dlq redrive 01980000-0000-7000-8000-000000000000 --payload '{"order": 42}'
      rdq-runner dlq redrive --queue payments --canary 20 --per-second 200 --watch
      rdq-runner dlq redrive --queue payments --error-type 'Timeout*' --dry-run
    """
    if task_id is not None:
        if given or everything or pace or dry_run or watching:
            raise click.UsageError("one task has no filter, no pace, no dry run, and no watch")
        if edit:
            # What it is now, of which an edit must not make something else by accident.
            edit.check(session.row(statements.envelope(task_id))["envelope"]["content_type"])
        changes = {**edit.arguments(session), **target.arguments, "reason": reason}
        row = session.row(statements.redrive(task_id, changes))
        output.record({"task_id": task_id, **row}, session.now)
        return None
    if edit:
        raise click.UsageError("a redrive of many edits nothing: give a task")
    require_filter(given, everything)
    filters = given.on(session)
    for _ in range(TRIES):
        preview = _preview(session, filters, pace, target)
        if dry_run:
            return show_dry_run(session, output, preview)
        preview.show(session, output, err=True)
        if not preview.matched:
            return Exit.NOTHING
        if not ask(f"Redrive {counted(preview.matched)}, {pace}{target}?", yes=yes):
            return Exit.REFUSED
        try:
            redrive_id = _begin(session, preview, {**pace.arguments, **target.arguments}, reason)
        except MoreMatch:
            click.echo("more match now than were shown; nothing was changed", err=True)
            continue
        if watching:
            return watch(session, output, redrive_id, interval)
        show_redrive(session, output, redrive_id)
        click.echo(f"watch it: rdq-runner redrive watch {redrive_id}", err=True)
        return None
    return Exit.REFUSED


def _preview(session: Session, filters: Filter, pace: Pace, target: Target) -> Preview:
    until_now = bounded(filters, session)
    how = {**pace.arguments, **target.arguments}
    row = session.row(statements.redrive_where(until_now.arguments, how, dry_run=True))
    return Preview(until_now, row["matched"], row["groups"], row, row["warnings"])


def _begin(
    session: Session, preview: Preview, given: Mapping[str, object], reason: str | None
) -> UUID:
    """Begin the redrive of what was shown.

    :raises MoreMatch: more matches; nothing was begun.
    """
    how = {**given, "reason": reason}
    with session.transaction():
        row = session.row(statements.redrive_where(preview.filters.arguments, how, dry_run=False))
        refuse_more(row["matched"], preview.matched)
    redrive_id: UUID = row["redrive_id"]
    return redrive_id
