"""What a redrive of one task may change in it, and how a redrive of many goes: their options."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite

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

    payload: str | None
    payload_file: str | None
    content_type: str | None
    headers: tuple[tuple[str, str], ...]
    run_at: Moment | None
    give_up_at: Moment | None

    def __bool__(self) -> bool:
        return any(value not in (None, ()) for value in vars(self).values())

    def arguments(self, session: Session, content_type: str) -> dict[str, object]:
        """Return what to pass to the function.

        :param content_type: of the task as it is.
        :raises Failure: the file cannot be read, is empty, or is not of its content type.
        """
        payload = self._content()
        if payload is not None and _is_json(self.content_type or content_type):
            try:
                json.loads(payload)
            except ValueError as error:
                raise Failure(
                    f"the payload is not JSON: {error}; nothing was changed",
                    hint="Name another type with --content-type if it is not meant to be.",
                ) from error
        return {
            "payload": payload,
            "run_at": on_clock(self.run_at, session),
            "give_up_at": on_clock(self.give_up_at, session),
            "content_type": self.content_type,
            "headers": Jsonb(dict(self.headers)) if self.headers else None,
        }

    def _content(self) -> str | bytes | None:
        if self.payload_file is None:
            return self.payload
        if self.payload is not None:
            raise click.UsageError("give one of --payload and --payload-file")
        try:
            with click.open_file(self.payload_file, "rb") as file:
                content: bytes = file.read()
        except OSError as error:
            raise Failure(f"{self.payload_file}: cannot be read: {error.strerror}") from error
        if not content:
            raise Failure(
                f"{self.payload_file} is empty; nothing was changed",
                hint="An empty payload is --payload ''.",
            )
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content
        return content if "\0" in text else text


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


def _is_json(content_type: str) -> bool:
    # RFC 6839, section 3.1, too: application/problem+json and its like.
    return (
        re.fullmatch(r"(application/|text/)?(\S+\+)?json\s*(;.*)?", content_type.lower())
        is not None
    )


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


edit_options = collected(
    "edit",
    Edit,
    click.option("--payload", metavar="TEXT", help="New payload."),
    click.option("--payload-file", type=click.Path(), help="New payload; - is stdin."),
    click.option("--content-type", metavar="TEXT", help="Of the payload.  [default: as it was]"),
    click.option(
        "--header",
        "headers",
        type=_header,
        multiple=True,
        metavar="NAME=VALUE",
        help="New headers, instead of all.",
    ),
    click.option("--run-at", type=future, metavar="TIME", help="Not before: 'in 2h'."),
    click.option("--give-up-at", type=future, metavar="TIME", help="Dead if not done by then."),
)
"""Gives a command the options of an `Edit`."""

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
