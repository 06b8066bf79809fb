"""Every command that there is, for people who do not want to write SQL."""

import re
import shlex
from collections.abc import Iterator

import click

from rdq_runner.cli import main
from rdq_runner.commands import COMMANDS

Path = tuple[str, ...]


def leaves(command: click.Command, path: Path = ()) -> Iterator[tuple[Path, click.Command]]:
    """Yield the commands below a group, with the words that name them."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


EVERYTHING = dict(leaves(main))
OURS = {
    path: command
    for path, command in EVERYTHING.items()
    if any(path[0] == ours.name for ours in COMMANDS)
}
ASKING = {path: command for path, command in OURS.items() if path != ("completion",)}
"""Those that ask the database."""


def examples(text: str) -> list[list[str]]:
    """Return the words of each command line in a text, without what the shell does."""
    lines = re.findall(r"^ *(rdq-runner .*)$", text, re.MULTILINE)
    return [shlex.split(re.split(r" > ", line)[0], comments=True)[1:] for line in lines]


def parse(words: list[str]) -> None:
    """Read a command line as the shell gives it, and do nothing.

    :raises click.ClickException: it is wrong.
    """
    command: click.Command = main
    context: click.Context | None = None
    while isinstance(command, click.Group):
        name, *words = words
        context = click.Context(command, parent=context, info_name=command.name)
        command = command.commands[name]
    command.make_context(command.name, words, parent=context)
