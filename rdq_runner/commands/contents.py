"""What an edit may change in a task, and how two of these differ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import sha256
from itertools import chain
from typing import Final

from rich.text import Text

from rdq_runner.commands.edits import Edit, as_argument
from rdq_runner.commands.tables import console
from rdq_runner.visible import visible

_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True)
class Content:
    """What an edit may change in a task."""

    payload: bytes
    content_type: str
    headers: Mapping[str, str]

    def edited(self, edit: Edit) -> "Content":
        """Return what an edit makes of it."""
        given = edit.payload.encode() if isinstance(edit.payload, str) else edit.payload
        return Content(
            payload=self.payload if given is None else given,
            content_type=self.content_type if edit.content_type is None else edit.content_type,
            headers=self.headers if edit.headers is None else edit.headers,
        )

    def unlike(self, other: "Content") -> dict[str, object]:
        """Return that of it which is not so in another, by name."""
        return {name: value for name, value in vars(self).items() if value != vars(other)[name]}

    def show_changes(self, now: "Content", *, err: bool) -> None:
        """Write for people what it would become."""
        screen = console(err=err)
        for line in chain(
            _difference("content type", [self.content_type], [now.content_type]),
            _difference("headers", _fields(self.headers), _fields(now.headers)),
            _difference("payload", _lines(self.payload), _lines(now.payload)),
        ):
            screen.print(line, soft_wrap=True)


def _difference(name: str, was: list[str], now: list[str]) -> Iterator[Text]:
    lines = unified_diff(was, now, f"{name}, as it is", f"{name}, as it would be", lineterm="")
    for number, line in enumerate(lines):
        style = "bold" if number < 2 else _STYLES.get(line[0], "")
        yield Text(visible(line), style)


def _fields(headers: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(headers.items())]


def _lines(payload: bytes) -> list[str]:
    text = as_argument(payload)
    if isinstance(text, str):
        # Not by splitlines(), which does not see whether the last one has an end.
        return text.split("\n")
    return [f"{len(payload)} bytes that are no text, SHA-256 {sha256(payload).hexdigest()}"]
