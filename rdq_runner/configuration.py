"""The configuration file: the runner's options, the queues with their settings, the endpoints.

What a setting means and which values it may have is said elsewhere, once: for the runner's options
by the command line, for queues and endpoints by the functions of the schema. This module says what
a file looks like, and where in it an error is.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.pq import Conninfo

from rdq_runner.conninfo import parameters

Value = str | int | float | bool | list["Value"] | dict[str, "Value"]
Table = Mapping[str, Value]

_KEYS: Final = ("dsn", "runner", "queues", "endpoints")
# How alike a name must be to be worth a question.
_ALIKE: Final = 0.5


class ConfigurationError(Exception):
    """A configuration is not one; the message has a line for each error: file, key, what to do."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What a file says.

    :param endpoints: by queue and handler.
    """

    path: Path
    dsn: str | None = None
    runner: Table = field(default_factory=dict)
    queues: Mapping[str, Table] = field(default_factory=dict)
    endpoints: Mapping[tuple[str, str], Table] = field(default_factory=dict)

    def error(self, keys: Iterable[str], complaint: str) -> str:
        """Return the line that says what is wrong at a key."""
        return f"{self.path}: {key_path(keys)}: {complaint}"


def load(path: Path) -> Configuration:
    """Read a file.

    :raises ConfigurationError: it cannot be read, is not TOML, or holds what no file may hold.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: is not TOML: {error}") from error
    problems = [*_problems(document)]
    if problems:
        file = Configuration(path=path)
        raise ConfigurationError("\n".join(file.error(keys, said) for keys, said in problems))
    return Configuration(
        path=path,
        dsn=document.get("dsn"),
        runner=document.get("runner", {}),
        queues=document.get("queues", {}),
        endpoints={
            (queue, handler): endpoint
            for queue, handlers in document.get("endpoints", {}).items()
            for handler, endpoint in handlers.items()
        },
    )


def unknown(name: str, known: Iterable[str], *, table: bool = False) -> str:
    """Return what to say about a key that does not exist.

    :param table: its value is a table, so it may be what follows a dot in a name.
    """
    names = sorted(known)
    # A hyphen for an underscore is the most frequent slip, and not always the nearest match.
    close = get_close_matches(name.lower().replace("-", "_"), names, n=1, cutoff=_ALIKE)
    advice = f"did you mean {close[0]}?" if close else f"the known ones are {', '.join(names)}"
    quoted = "; a name that has a dot is written in quotes" if table else ""
    return f"there is no such key: {advice}{quoted}"


def key_path(keys: Iterable[str]) -> str:
    """Return the keys as TOML writes them: ``queues."mail.eu".lease``."""
    bare = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    return ".".join(key if key and bare.issuperset(key) else f'"{key}"' for key in keys)


def has_password(dsn: str) -> bool:
    """Whether a connection string holds what libpq itself would not show.

    :raises ConfigurationError: it is not a connection string. The message does not repeat it.
    """
    secret = {
        option.keyword.decode() for option in Conninfo.get_defaults() if option.dispchar == b"*"
    }
    try:
        return not secret.isdisjoint(parameters(dsn))
    except psycopg.ProgrammingError as error:
        raise ConfigurationError(str(error)) from None


def _problems(document: Mapping[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
    for name, value in document.items():
        if name not in _KEYS:
            yield (name,), unknown(name, _KEYS)
        elif name == "dsn":
            yield from ((("dsn",), said) for said in _dsn_problems(value))
        else:
            depth = {"runner": 1, "queues": 2, "endpoints": 3}[name]
            yield from _table_problems((name,), value, depth)


def _dsn_problems(dsn: object) -> Iterable[str]:
    if not isinstance(dsn, str):
        yield "give a connection string"
        return
    try:
        if has_password(dsn):
            yield (
                "a password does not belong into this file: give it in PGPASSWORD or RDQ_DSN, in a"
                " password file (passfile=…), or name a service (service=…)"
            )
    except ConfigurationError as error:
        yield str(error)


def _table_problems(
    keys: tuple[str, ...], value: object, depth: int
) -> Iterable[tuple[tuple[str, ...], str]]:
    """Find what should be a table, in so many of them, and the values that have no form in JSON."""
    if depth == 0:
        if not _has_form_in_json(value):
            yield keys, "dates, times and what is no finite number are values of no setting"
    elif not isinstance(value, dict):
        yield keys, f"is a {type(value).__name__}: give a table"
    else:
        for key, content in value.items():
            yield from _table_problems((*keys, key), content, depth - 1)


def _has_form_in_json(value: object) -> bool:
    match value:
        case dict():
            return all(_has_form_in_json(item) for item in value.values())
        case list():
            return all(_has_form_in_json(item) for item in value)
        case float():
            return isfinite(value)
    return not isinstance(value, date | time | datetime)
