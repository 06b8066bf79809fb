"""The page for the night, docs/dead-letters.md: what it tells people to type."""

import re
from pathlib import Path
from typing import Final

from tests.commands.tree import EVERYTHING, examples

DOCS: Final = Path(__file__).parents[2] / "docs"
TEXT: Final = (DOCS / "dead-letters.md").read_text(encoding="utf-8")

ID: Final = "01980000-0000-7000-8000-000000000000"
"""Stands for a task, or a redrive."""
FINGERPRINT: Final = "0123456789abcdef"


def shell_lines() -> list[str]:
    """Return what is to be typed into a shell, in the page's order."""
    return [line.strip() for line in _blocks("sh").splitlines()]


def statements() -> list[str]:
    """Return what is to be typed into psql, in the page's order."""
    return re.findall(r"\S.*?(?:;|\\gset)$", _blocks("sql"), re.DOTALL | re.MULTILINE)


def rows_of(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first column has this heading."""
    [table] = re.findall(rf"^\| {heading} \|.*\n\|[ |-]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def path(words: list[str]) -> tuple[str, ...]:
    """Return the words that name a command."""
    return next(path for path in EVERYTHING if tuple(words[: len(path)]) == path)


def shows_command(words: list[str]) -> bool:
    """Whether the page shows this command, and it or that of the command line its options."""
    others = (DOCS / "command-line.md").read_text(encoding="utf-8")
    flags = {*re.findall(r"--[a-z-]+", TEXT + others)}
    commands = {path(shown) for shown in examples("\n".join(shell_lines()))}
    return path(words) in commands and flags >= {word for word in words if word[:2] == "--"}


def shows_statement(statement: str) -> bool:
    """Whether the page shows this statement, with any literals, and perhaps other columns."""
    return _form(statement) in map(_form, statements())


def _blocks(language: str) -> str:
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", TEXT, re.DOTALL | re.MULTILINE)
    return "".join(found)


def _form(statement: str) -> str:
    text = re.sub(r":?'[^']*'", "''", statement.strip().rstrip(";"))
    return " ".join(re.sub(r"^select .* from", "select from", text, flags=re.DOTALL).split())
