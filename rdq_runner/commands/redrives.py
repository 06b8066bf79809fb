"""``rdq-runner redrive``: the bulk redrives, and what their operators tell them."""

from typing import Final
from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.command import ask, command
from rdq_runner.commands.exits import Exit
from rdq_runner.commands.output import Output
from rdq_runner.commands.session import Session
from rdq_runner.commands.watching import watch

COLUMNS: Final = (
    "redrive_id",
    "state",
    "matched",
    "sent",
    "succeeded",
    "died",
    "skipped",
    "undecided",
    "began_at",
    "actor",
)

_id = click.argument("redrive_id", type=click.UUID)
_reason = click.option("--reason", help="Why, for the audit.")

interval_option = click.option(
    "--interval",
    type=click.FloatRange(min=0.05, max=3600),
    default=1.0,
    show_default=True,
    help="Seconds between two looks.",
)


@click.group()
def redrive() -> None:
    """Watch bulk redrives; pause, resume and cancel them."""


@command(redrive, "list")
@click.option("--state", "states", metavar="TEXT", multiple=True, help="Such as RUNNING, HALTED.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
def _list(session: Session, output: Output, states: tuple[str, ...], limit: int) -> None:
    """List bulk redrives, newest first.

    \b
    Example:
      rdq-runner redrive list --state RUNNING --state HALTED
    """
    output.table(session.rows(statements.redrives([*states], limit)), COLUMNS, session.now)


@command(redrive, "show")
@_id
def _show(session: Session, output: Output, redrive_id: UUID) -> None:
    """Show one bulk redrive: its filter, its state and why, its counts.

    \b
    Example:
      rdq-runner redrive show 01980000-0000-7000-8000-000000000000
    """
    show_redrive(session, output, redrive_id)


@command(redrive, "watch")
@_id
@interval_option
def _watch(session: Session, output: Output, redrive_id: UUID, interval: float) -> Exit:
    """Watch a bulk redrive until all that it sent has ended, or it is stopped.

    The exit status says how: 0 all succeeded, 7 some died again, 6 halted, paused or cancelled.
    With --jsonl each change is a line.

    \b
    Example:
      rdq-runner redrive watch 01980000-0000-7000-8000-000000000000
    """
    return watch(session, output, redrive_id, interval)


@command(redrive, "pause", changes=True)
@_id
@_reason
def _pause(session: Session, output: Output, redrive_id: UUID, reason: str | None) -> None:
    """Stop a bulk redrive for now; what is sent goes on.

    \b
    Example:
      rdq-runner redrive pause 01980000-0000-7000-8000-000000000000 --reason 'too fast'
    """
    session.rows(statements.pause_redrive(redrive_id, reason))
    show_redrive(session, output, redrive_id)


@command(redrive, "resume", changes=True)
@_id
@_reason
@click.option("--yes", is_flag=True, help="Do not ask.")
def _resume(
    session: Session, output: Output, redrive_id: UUID, reason: str | None, yes: bool
) -> Exit | None:
    """Let a bulk redrive go on that is paused or was halted.

    One that was halted goes on without waiting for its canary.

    \b
    Example:
      rdq-runner redrive resume 01980000-0000-7000-8000-000000000000 --yes
    """
    row = session.row(statements.redrive_status(redrive_id))
    output.show([row], (*COLUMNS[:8], "state_reason"), session.now, err=True)
    if not ask(f"Send the other {row['matched'] - row['sent'] - row['skipped']}?", yes=yes):
        return Exit.REFUSED
    session.rows(statements.resume_redrive(redrive_id, reason))
    show_redrive(session, output, redrive_id)
    return None


@command(redrive, "cancel", changes=True)
@_id
@_reason
def _cancel(session: Session, output: Output, redrive_id: UUID, reason: str | None) -> None:
    """End a bulk redrive for good; what is sent goes on, the rest stays dead.

    \b
    Example:
      rdq-runner redrive cancel 01980000-0000-7000-8000-000000000000
    """
    session.rows(statements.cancel_redrive(redrive_id, reason))
    show_redrive(session, output, redrive_id)


def show_redrive(session: Session, output: Output, redrive_id: UUID) -> None:
    """Write how a redrive stands."""
    output.record(session.row(statements.redrive_status(redrive_id)), session.now)
