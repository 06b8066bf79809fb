"""Watches a bulk redrive until nothing more will come of it."""

import time
from operator import methodcaller
from typing import Final
from uuid import UUID

import click

from rdq_runner.commands import statements
from rdq_runner.commands.exits import Exit
from rdq_runner.commands.output import Format, Output
from rdq_runner.commands.progress import Progress
from rdq_runner.commands.session import Row, Session
from rdq_runner.visible import visible

# Without a change for so long something is probably missing.
STILL_SECONDS: Final = 30.0

_STOPPED: Final = frozenset({"HALTED", "PAUSED", "CANCELLED"})


def watch(session: Session, output: Output, redrive_id: UUID, interval_seconds: float) -> Exit:
    """Show how a redrive goes, and write its last status.

    It ends when all is sent and has ended, or when somebody or something has stopped it. Ctrl-C
    ends the watching, not the redrive.
    """
    row = session.row(statements.redrive_status(redrive_id))
    try:
        with Progress(row["matched"]) as progress:
            row = _follow(session, output, row, progress, interval_seconds)
    except KeyboardInterrupt:
        click.echo(f"it goes on: rdq-runner redrive watch {redrive_id}", err=True)
        return Exit.INTERRUPTED
    if output.format is not Format.JSONL:
        output.record(row, session.now)
    return _conclude(row)


def _follow(
    session: Session, output: Output, row: Row, progress: Progress, interval_seconds: float
) -> Row:
    look = methodcaller("row", statements.redrive_status(row["redrive_id"]))
    changed_at = time.monotonic()

    def say_away(why: str) -> None:
        progress.update(_ended(row), f"the database is away, trying again: {why}")

    if output.format is Format.JSONL:
        output.record(row, session.now)
    while True:
        progress.update(_ended(row), _said(row))
        if row["state"] in _STOPPED or (row["state"] == "DONE" and row["undecided"] == 0):
            return row
        time.sleep(interval_seconds)
        before, row = row, session.patiently(look, interval_seconds, say_away)
        if row != before:
            changed_at = time.monotonic()
            if output.format is Format.JSONL:
                output.record(row, session.now)
        elif time.monotonic() - changed_at >= STILL_SECONDS:
            changed_at = time.monotonic()
            click.echo(
                f"nothing has moved for {STILL_SECONDS:.0f} s: runners send and work;"
                " rdq-runner top shows whether there are any",
                err=True,
            )


def _ended(row: Row) -> int:
    ended: int = row["succeeded"] + row["died"] + row["skipped"]
    return ended


def _said(row: Row) -> str:
    parts = [f"{row[name]} {name}" for name in ("sent", "succeeded", "died", "skipped")]
    if row["canary_out"]:
        parts.append("waiting for the canary")
    return f"{row['state']}: {', '.join(parts)}"


def _conclude(row: Row) -> Exit:
    redrive_id = row["redrive_id"]
    if row["state"] in _STOPPED:
        why = f": {visible(row['state_reason'])}" if row["state_reason"] else ""
        click.echo(f"the redrive is {row['state']}{why}", err=True)
        if row["state"] != "CANCELLED":
            click.echo(
                f"go on: rdq-runner redrive resume {redrive_id}\n"
                f"end it: rdq-runner redrive cancel {redrive_id}",
                err=True,
            )
        return Exit.STOPPED
    if row["died"]:
        click.echo(f"{row['died']} died again: rdq-runner dlq groups", err=True)
        return Exit.DIED_AGAIN
    return Exit.DONE
