"""What a connection string says, and what rdq has every connection agree on.

A connection string may hold a password, and one that is misread may take a part of it for the name
of a host. So no error here shows any of its text: libpq's own would.
"""

import re
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

# Whatever PGCLIENTENCODING says, or the encoding of the database: psycopg reads and writes what is
# sent by it, and bytes take the place of text where it is SQL_ASCII.
_PINNED: Final = {"client_encoding": "UTF8"}

_FORM: Final = "give postgresql://user:password@host/database or host=… user=… dbname=…"
_ESCAPES: Final = "write @ : / ? # % in a user's name or a password as %40 %3A %2F %3F %23 %25"

_URI: Final = re.compile(r"postgres(?:ql)?://")
_NUMBERS: Final = re.compile(r"\s*-?\d*\s*")


def parameters(dsn: str) -> dict[str, Any]:
    """Return the parameters of a connection, as `psycopg.connect` takes them.

    :param dsn: connection string or URI; what it leaves out comes from libpq's environment.
    :raises psycopg.ProgrammingError: it is not one; the message has none of its text.
    """
    try:
        found: dict[str, Any] = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise psycopg.ProgrammingError(
            f"this is not a connection string that libpq can read: {_FORM}; {_ESCAPES}"
        ) from None
    if problem := _problem(dsn, found):
        raise psycopg.ProgrammingError(f"this is not a connection string: {problem}")
    return {**found, **_PINNED}


def connect(dsn: str) -> psycopg.Connection[Any]:
    """Open a connection in autocommit, with nothing prepared.

    :raises psycopg.Error: there is none to be had, or `dsn` is no connection string.
    """
    return psycopg.connect(**parameters(dsn), autocommit=True, prepare_threshold=None)


def _problem(dsn: str, found: dict[str, Any]) -> str | None:
    if not all(_NUMBERS.fullmatch(port) for port in str(found.get("port", "")).split(",")):
        return f"its port is not a number; {_ESCAPES}"
    # Where a password has an @ or a / that is not escaped, its rest is taken for one of these.
    misread = ["host", "dbname"] if _URI.match(dsn) else []
    if any("@" in str(found.get(name, "")).lstrip("@") for name in misread):
        return f"there is an @ in the name of its host or database; {_ESCAPES}"
    if not _NUMBERS.fullmatch(str(found.get("connect_timeout", ""))):
        return "its connect_timeout is not a whole number of seconds"
    return None
