"""A statement as a person can paste it into psql: its arguments written as literals."""

import json
from datetime import datetime, timedelta
from math import isfinite
from typing import Final
from uuid import UUID

from psycopg.types.json import Jsonb

from rdq_runner.commands.statements import Null, Statement
from rdq_runner.visible import is_visible

# A longer value, such as a payload, is named instead of shown.
LIMIT: Final = 2000


def pasteable(statement: Statement) -> str:
    """Return the text with literals in it, and a semicolon.

    Where a value is longer than `LIMIT` characters there is a variable of psql, and above the
    statement a comment that says how to set it.
    """
    comments, literals = [], {}
    for name, value in statement.arguments.items():
        literals[name] = _literal(value)
        if len(literals[name]) > LIMIT and isinstance(value, str | bytes):
            command, literals[name] = _variable(name, value)
            comments.append(f"-- {name} has {len(value)} bytes or characters: {command}\n")
    return f"{''.join(comments)}{statement.text % literals};"


def _variable(name: str, value: str | bytes) -> tuple[str, str]:
    if isinstance(value, bytes):
        return rf"\set {name} `xxd -p FILE | tr -d '\n'`", f"decode(:'{name}', 'hex')"
    return rf"\set {name} `cat FILE`", f":'{name}'"


def _literal(value: object) -> str:
    match value:
        case None | Null():
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value) if isfinite(value) else _quoted(str(value))
        case bytes():
            return rf"'\x{value.hex()}'::bytea"
        case datetime():
            return _quoted(value.isoformat())
        case timedelta():
            return _quoted(f"{value.total_seconds():.15g} seconds")
        case Jsonb():
            return _quoted(json.dumps(value.obj, ensure_ascii=False))
        case list():
            return f"array[{', '.join(map(_literal, value))}]"
        case str() | UUID():
            return _quoted(str(value))
    raise TypeError(f"a {type(value).__name__} has no literal")


def _quoted(text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    if all(map(is_visible, text)):
        return quoted
    # What a terminal would act on, in the notation of PostgreSQL.
    return "E" + "".join(c if is_visible(c) else _escape(c) for c in quoted.replace("\\", "\\\\"))


def _escape(character: str) -> str:
    if character == "\n":
        return r"\n"
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
