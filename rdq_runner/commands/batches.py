"""A change of many tasks, batch by batch, each in a transaction of its own."""

from collections.abc import Callable

import click
import psycopg

from rdq_runner.commands.exits import Exit
from rdq_runner.commands.output import Output
from rdq_runner.commands.previews import MoreMatch
from rdq_runner.commands.progress import Progress
from rdq_runner.commands.session import Row, Session


def in_batches(
    session: Session,
    output: Output,
    step: Callable[[int], Row],
    done_as: str,
    total: int,
    counted: Callable[[int], str],
) -> Exit:
    """Change what was shown, until nothing of it remains or nothing more of it can be changed.

    :param step: is given how many are done, and changes a batch; its row says how many it changed,
        as `done_as`, and how many remain.
    :param counted: says how many tasks a number is.
    :raises MoreMatch: more matches; nothing was changed.
    """
    done, remaining = 0, total
    try:
        with Progress(total) as progress:
            while remaining:
                row = step(done)
                done += row[done_as]
                remaining = row["remaining"]
                progress.update(done, f"{remaining} remain")
                if not row[done_as]:
                    break
    except (KeyboardInterrupt, psycopg.Error, MoreMatch) as error:
        if isinstance(error, MoreMatch) and done == 0:
            raise
        click.echo(f"stopped: {counted(done)} {done_as}, the others are untouched", err=True)
        if isinstance(error, MoreMatch):
            return Exit.STOPPED
        raise
    output.record({done_as: done, "remaining": remaining}, session.now)
    return Exit.STOPPED if remaining else Exit.DONE
