"""``rdq-runner dlq``: what died, and why."""

import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final
from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import command
from rdq_runner.commands.filters import Filter, GivenFilter, filter_options
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Row, Session
from rdq_runner.commands.times import duration
from rdq_runner.visible import visible

LIST_COLUMNS: Final = (
    "task_id",
    "dead_at",
    "error_type",
    "queue",
    "dead_reason",
    "handler",
    "attempts",
    "message",
)
GROUP_COLUMNS: Final = (
    "fingerprint",
    "count",
    "growing",
    "error_type",
    "code_versions",
    "first_dead_at",
    "error_classes",
    "last_dead_at",
    "share",
    "handler",
    "dead_reasons",
    "sample_message",
)
TIMELINE_COLUMNS: Final = (
    "bucket_at",
    "count",
    "fingerprint",
    "error_type",
    "code_version",
    "handler",
)
HISTORY_COLUMNS: Final = (
    "attempt_no",
    "life",
    "outcome",
    "error_class",
    "error_type",
    "started_at",
    "finished_at",
    "code_version",
    "runner",
    "message",
)
# What one call gives at most, and what a list takes at a time.
_PAGE: Final = 1000
# Of a payload that a person looks at.
_SHOWN: Final = 4000

task_id_argument = click.argument("task_id", type=click.UUID)
_limit = click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Rows at most."
)


@click.group()
def dlq() -> None:
    """Look at dead letters, put them back to work, or let them go."""


@command(dlq, "list")
@filter_options
@_limit
@click.option("--after", metavar="PAGE", help="Go on after this row: its column page.")
def _list(
    session: Session, output: Output, given: GivenFilter, limit: int, after: str | None
) -> None:
    """List dead letters, newest first.

    \b
    Example:
      rdq-runner dlq list --queue payments --error-type 'Timeout*' --since 2h
    """
    rows: Iterable[Row] = _pages(session, given.on(session), limit, after)
    if output.is_table:
        rows = list(rows)
    output.table(rows, LIST_COLUMNS, session.now)
    if isinstance(rows, list) and len(rows) == limit:
        click.echo(f"there may be more: --after '{visible(rows[-1]['page'])}'", err=True)


@command(dlq, "groups")
@filter_options
@_limit
def _groups(session: Session, output: Output, given: GivenFilter, limit: int) -> None:
    """Group dead letters by cause: how many, since when, with which code versions.

    \b
    Example:
      rdq-runner dlq groups --queue payments
    """
    rows = session.rows(statements.dead_letter_groups(given.on(session).arguments, limit))
    output.table(rows, GROUP_COLUMNS, session.now)


@command(dlq, "timeline")
@filter_options
@click.option("--bucket", type=duration, metavar="LENGTH", help="From 1m to 1d.  [default: 1h]")
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True)
def _timeline(
    session: Session, output: Output, given: GivenFilter, bucket: timedelta | None, limit: int
) -> None:
    """Count deaths by time and cause, newest first: a deploy shows.

    \b
    Example:
      rdq-runner dlq timeline --queue payments --bucket 5m --since 3h
    """
    filters = given.on(session).arguments
    rows = session.rows(statements.dead_letter_timeline(filters, bucket, limit))
    output.table(rows, TIMELINE_COLUMNS, session.now)


@command(dlq, "show")
@task_id_argument
@click.option("--payload", is_flag=True, help="Write the payload alone, byte for byte.")
def _show(session: Session, output: Output, task_id: UUID, payload: bool) -> None:
    """Show a whole task: what was asked, why it is dead, its payload.

    \b
    Example:
      rdq-runner dlq show 01980000-0000-7000-8000-000000000000
      rdq-runner dlq show 01980000-0000-7000-8000-000000000000 --payload
    """
    envelope: Row = session.row(statements.envelope(task_id))["envelope"]
    content = b64decode(envelope["payload"])
    if payload:
        _write(content)
    elif output.is_table:
        shown = {name: value for name, value in envelope.items() if name != "attempts"}
        shown |= {"attempts": len(envelope["attempts"]), "payload": readable(content)}
        dead = shown.pop("dead") or {}
        output.record(shown | dead, session.now)
    else:
        output.record(envelope, session.now)


@command(dlq, "history")
@task_id_argument
def _history(session: Session, output: Output, task_id: UUID) -> None:
    """List every attempt of a task; --wide shows their stacks.

    \b
    Example:
      rdq-runner dlq history 01980000-0000-7000-8000-000000000000
    """
    rows = session.rows(statements.history(task_id))
    output.table(rows, HISTORY_COLUMNS, session.now)


def readable(content: bytes) -> str:
    """Return a payload for people: its text, or how long it is; long text is cut."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes that are no text"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(content)} bytes in all)"


def _pages(session: Session, filters: Filter, limit: int, after: str | None) -> Iterator[Row]:
    """Yield dead letters, page by page, so that a long list needs no memory."""
    while limit > 0:
        most = min(limit, _PAGE)
        rows = session.rows(statements.dead_letters(filters.arguments, most, after))
        yield from rows
        if len(rows) < most:
            return
        limit -= most
        after = rows[-1]["page"]


def _write(content: bytes) -> None:
    if sys.stdout.isatty():
        click.echo(visible(content.decode(errors="backslashreplace"), keep="\n\t"))
    else:
        sys.stdout.buffer.write(content)
