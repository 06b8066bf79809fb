"""What every command has in common: the options, the session, the exit status."""

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any, Final

import click

from rdq_runner.commands.exits import Exit, Failure
from rdq_runner.commands.output import Format, Output
from rdq_runner.commands.session import connected
from rdq_runner.configuration import Configuration
from rdq_runner.options import connection_options, option

Action = Callable[..., Exit | None]

_COMMON: Final = ("as_json", "as_jsonl", "wide", "show_sql", "actor", "dsn", "config", "help")


class _Command(click.Command):
    """A command whose help shows its own options first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                (common if parameter.name in _COMMON else own).append(record)
        for title, records in (("Options", own), ("Options of every command", common)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command(
    group: click.Group | None, name: str, *, changes: bool = False
) -> Callable[[Action], click.Command]:
    """Make a function a command, of a group if one is given.

    It is called with the session and the output, then its own parameters, and returns how the
    command ends.

    :param changes: it changes something, so the audit asks who did.
    """

    def register(action: Action) -> click.Command:
        @functools.wraps(action)
        @click.pass_context
        def run(
            context: click.Context,
            /,
            config: Configuration | None,
            dsn: str,
            as_json: bool,
            as_jsonl: bool,
            wide: bool,
            show_sql: bool,
            actor: str | None = None,
            **parameters: Any,
        ) -> None:
            if as_json and as_jsonl:
                raise click.UsageError("give one of --json and --jsonl")
            format_ = Format.JSON if as_json else Format.JSONL if as_jsonl else Format.TABLE
            try:
                with connected(dsn, actor=actor, show_sql=show_sql) as session:
                    status = action(session, Output(format_, wide), **parameters)
            except Failure as failure:
                click.echo(f"Error: {failure}", err=True)
                status = failure.status
            except KeyboardInterrupt:
                status = Exit.INTERRUPTED
            context.exit(status or Exit.DONE)

        common = [
            click.option("--json", "as_json", is_flag=True, help="One JSON document."),
            click.option("--jsonl", "as_jsonl", is_flag=True, help="JSON, an object a line."),
            click.option("--wide", is_flag=True, help="Every column, whole texts, absolute times."),
            click.option("--show-sql", is_flag=True, help="Print the SQL that runs, to stderr."),
            connection_options,
        ]
        if changes:
            common.append(
                option("--actor", "RDQ_ACTOR", help="Whom the audit names.  [default: the role]")
            )
        for add in common:
            run = add(run)
        made: click.Command = (group or click).command(name, cls=_Command)(run)
        return made

    return register


def collected(
    name: str, make: Callable[..., object], *options: Callable[[Action], Action]
) -> Callable[[Action], Action]:
    """Make a decorator that gives a command some options, and calls it with one thing out of them.

    :param name: of the parameter of the command.
    :param make: is called with the options by their names.
    """

    def decorate(action: Action) -> Action:
        @functools.wraps(action)
        def call(*arguments: Any, **parameters: Any) -> Exit | None:
            mine = {key: parameters.pop(key) for key in names}
            return action(*arguments, **{name: make(**mine)}, **parameters)

        others = _parameters(action)
        decorated: Action = call
        for add in reversed(options):
            decorated = add(decorated)
        names = [name for name in _parameters(decorated) if name not in others]
        return decorated

    return decorate


def _parameters(action: Action) -> list[str]:
    """Return the names of its options, the first one first; click keeps them the other way."""
    return [str(parameter.name) for parameter in reversed(getattr(action, "__click_params__", ()))]


def ask(question: str, *, yes: bool) -> bool:
    """Ask before something that cannot be taken back.

    :param yes: it was answered on the command line.
    """
    if yes:
        return True
    if not on_terminal():
        click.echo("refused: there is no terminal to ask on; give --yes to confirm", err=True)
        return False
    return confirmed(question)


def on_terminal() -> bool:
    """Whether there is somebody to ask; a process may have no stdin at all."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask on the terminal, and say that nothing was changed if the answer is no."""
    with contextlib.suppress(click.Abort):
        if click.confirm(question, default=default, err=True):
            return True
    click.echo("nothing was changed", err=True)
    return False
