"""What a redrive of one task may change in it, and how a redrive of many goes: their options."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite
from typing import Any, Final

import click
from psycopg.types.json import Jsonb

from rdq_runner.commands.command import collected
from rdq_runner.commands.exits import Failure
from rdq_runner.commands.filters import on_clock
from rdq_runner.commands.session import Session
from rdq_runner.commands.statements import NULL, Null
from rdq_runner.commands.times import Moment, duration, future, length


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What is changed in one task; None stays as it is."""

    payload: str | bytes | None = None
    content_type: str | None = None
    headers: Mapping[str, str] | None = None
    run_at: Moment | None
    give_up_at: Moment | None

    def __bool__(self) -> bool:
        return any(value is not None for value in vars(self).values())

    def check(self, content_type: str) -> None:
        """Refuse a payload that is not of its content type.

        :param content_type: of the task as it is.
        :raises Failure: it is not JSON, and should be.
        """
        if self.payload is None or not is_json(self.content_type or content_type):
            return
        try:
            json.loads(self.payload)
        except ValueError as error:
            raise Failure(
                f"the payload is not JSON: {error}; nothing was changed",
                hint="Name another type with --content-type if it is not meant to be.",
            ) from error

    def arguments(self, session: Session) -> dict[str, object]:
        """Return what to pass to the function."""
        return {
            "payload": self.payload,
            "run_at": on_clock(self.run_at, session),
            "give_up_at": on_clock(self.give_up_at, session),
            "content_type": self.content_type,
            "headers": None if self.headers is None else Jsonb(self.headers),
        }


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a redrive sends to, if not to where the task was; None stays as it is."""

    to_queue: str | None
    to_handler: str | None
    to_handler_version: str | None

    @property
    def arguments(self) -> Mapping[str, object]:
        """What to pass to the function."""
        return vars(self)

    def __str__(self) -> str:
        words = {"to_queue": "queue", "to_handler": "handler", "to_handler_version": "version"}
        given = [
            f"{words[name]} {value}" for name, value in vars(self).items() if value is not None
        ]
        return f", to {', '.join(given)}" if given else ""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How a redrive of many goes; None is as the function has it."""

    per_second: float | None
    spread: timedelta | None
    canary: int | None
    halt_at: float | Null | None
    halt_min: int | None

    def __bool__(self) -> bool:
        return any(value is not None for value in vars(self).values())

    @property
    def arguments(self) -> Mapping[str, object]:
        """What to pass to the function."""
        return vars(self)

    def __str__(self) -> str:
        parts = []
        if self.per_second is not None:
            parts.append(f"{self.per_second:g} per second")
        if self.spread is not None:
            parts.append(f"spread over {length(self.spread)}")
        if self.canary:
            parts.append(f"{self.canary} of them first as a canary")
        return ", ".join(parts) or "all at once"


def as_argument(payload: bytes) -> str | bytes:
    """Return a payload as text, where PostgreSQL and an editor take it for one."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return payload
    return payload if "\0" in text else text


def is_json(content_type: str) -> bool:
    """Whether a payload of this type is JSON."""
    # RFC 6839, section 3.1, too: application/problem+json and its like.
    return (
        re.fullmatch(r"(application/|text/)?(\S+\+)?json\s*(;.*)?", content_type.lower())
        is not None
    )


def _edit(
    payload: str | None = None,
    payload_file: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    **others: Any,
) -> Edit:
    if payload_file is None:
        content: str | bytes | None = payload
    elif payload is None:
        content = as_argument(_content(payload_file))
    else:
        raise click.UsageError("give one of --payload and --payload-file")
    return Edit(payload=content, headers=dict(headers) or None, **others)


def _content(name: str) -> bytes:
    try:
        with click.open_file(name, "rb") as file:
            content: bytes = file.read()
    except OSError as error:
        raise Failure(f"{name}: cannot be read: {error.strerror}") from error
    if not content:
        raise Failure(
            f"{name} is empty; nothing was changed", hint="An empty payload is --payload ''."
        )
    return content


def _header(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not given or not name:
        raise click.BadParameter(f"{text!r} is no header: give NAME=VALUE")
    return name, value


def _share(text: str) -> float | Null:
    """Read ``0.1``, ``10%`` or ``never``."""
    if text.strip().lower() == "never":
        return NULL
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = float("nan")
    if rest or not isfinite(share):
        raise click.BadParameter(f"{text!r} is no share: give 0.1, 10% or never")
    return share


_payload_options: Final = (
    click.option("--payload", metavar="TEXT", help="New payload."),
    click.option("--payload-file", type=click.Path(), help="New payload; - is stdin."),
)
_type_options: Final = (
    click.option("--content-type", metavar="TEXT", help="Of the payload.  [default: as it was]"),
    click.option(
        "--header",
        "headers",
        type=_header,
        multiple=True,
        metavar="NAME=VALUE",
        help="New headers, instead of all.",
    ),
)
_time_options: Final = (
    click.option("--run-at", type=future, metavar="TIME", help="Not before: 'in 2h'."),
    click.option("--give-up-at", type=future, metavar="TIME", help="Dead if not done by then."),
)

edit_options = collected("edit", _edit, *_payload_options, *_type_options, *_time_options)
"""Gives a command the options of an `Edit`."""

editor_options = collected("edit", _edit, *_type_options, *_time_options)
"""Those of an `Edit` whose payload comes from an editor."""

revert_options = collected("edit", _edit, *_time_options)
"""Those of an `Edit` that is what a task was before."""

target_options = collected(
    "target",
    Target,
    click.option("--to-queue", metavar="TEXT", help="Send to another queue, for good."),
    click.option("--to-handler", metavar="TEXT", help="Send to another handler, for good."),
    click.option(
        "--to-version", "to_handler_version", metavar="TEXT", help="For another handler version."
    ),
)
"""Gives a command the options of a `Target`."""

pace_options = collected(
    "pace",
    Pace,
    click.option("--per-second", type=float, metavar="N", help="So many a second."),
    click.option("--spread", type=duration, metavar="LENGTH", help="Evenly over: '10m'."),
    click.option("--canary", type=int, metavar="N", help="So many first, then the rest."),
    click.option(
        "--halt-at",
        type=_share,
        metavar="SHARE",
        help="Halt when so many died again: 10%, never.",
    ),
    click.option("--halt-min", type=int, metavar="N", help="But not before so many have ended."),
)
"""Gives a command the options of a `Pace`."""
