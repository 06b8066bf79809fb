"""``rdq-runner top``: queues, runners and redrives, live."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from rdq_runner.commands import queues, redrives, statements
from rdq_runner.commands.command import command
from rdq_runner.commands.output import Format, Output
from rdq_runner.commands.session import Row, Session
from rdq_runner.commands.tables import console, drawn
from rdq_runner.commands.times import absolute

Scene = Mapping[str, Sequence[Row]]

_COLUMNS: Final = {
    "queues": queues.COLUMNS,
    "runners": (
        "runner",
        "alive",
        "queues",
        "in_flight",
        "concurrency",
        "unreported",
        "code_version",
        "started_at",
        "seen_at",
    ),
    "redrives": redrives.COLUMNS[:9],
}
# Redrives that somebody may want to do something about.
_OPEN: Final = ("RUNNING", "PAUSED", "HALTED")
_REDRIVES: Final = 20


@command(None, "top")
@click.option("--once", is_flag=True, help="Show it once.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05, max=3600),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
def top(session: Session, output: Output, once: bool, interval: float) -> None:
    """Show queues, runners and open redrives, and refresh until Ctrl-C.

    Without a terminal it shows them once; with --jsonl each look is a line.

    \b
    Example:
      rdq-runner top
      rdq-runner top --once --json
    """
    screen = console()
    with contextlib.suppress(KeyboardInterrupt):
        if output.is_table and screen.is_terminal and not once:
            _show_live(session, screen, interval)
        elif output.is_table:
            _print(session, output)
        else:
            output.record(dict(_look(session)), session.now)
            while output.format is Format.JSONL and not once:
                time.sleep(interval)
                output.record(dict(session.patiently(_look, interval)), session.now)


def _show_live(session: Session, screen: Console, interval_seconds: float) -> None:
    with Live(console=screen, screen=True, auto_refresh=False) as live:

        def say_away(why: str) -> None:
            live.update(Text(f"the database is away, trying again: {why}"), refresh=True)

        while True:
            scene = session.patiently(_look, interval_seconds, say_away)
            live.update(_screen(scene, session.now, screen.width), refresh=True)
            time.sleep(interval_seconds)


def _print(session: Session, output: Output) -> None:
    for name, rows in _look(session).items():
        click.echo(name)
        output.table(rows, _COLUMNS[name], session.now)
        click.echo()


def _look(session: Session) -> Scene:
    return {
        "queues": session.rows(statements.queues()),
        "runners": session.rows(statements.runners()),
        "redrives": session.rows(statements.redrives([*_OPEN], _REDRIVES)),
    }


def _screen(scene: Scene, now: datetime, room: int) -> RenderableType:
    parts: list[RenderableType] = [Text(f"rdq  {absolute(now)}  (Ctrl-C ends)", "dim")]
    for name, rows in scene.items():
        parts.append(Text(f"\n{name}", "bold"))
        chosen = [column for column in _COLUMNS[name] if rows and column in rows[0]]
        parts.append(drawn(rows, chosen, now, room) if rows else Text("none", "dim"))
    return Group(*parts)
