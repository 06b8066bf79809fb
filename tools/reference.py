"""The SQL reference, docs/sql-reference.md, out of the comments in the catalogue.

    python -m tools.reference     writes the file, from a database made for it

A test compares the file with the catalogue, so that neither can change alone.
"""

import os
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from tools.template import clone, drop, ensure_template
from tools.testbed import obtain

PATH = Path(__file__).parents[1] / "docs" / "sql-reference.md"

HEAD = """\
# SQL reference

Every function and view that rdq offers, under the capability that brings it (`rdq.grant_access`;
an operator is a viewer too, an admin everything). All of it is in the schema `rdq`, and parameters
are called by name: `max_tasks => 10`. The error codes are explained in [errors.md](errors.md), the
states and rules in [states.md](states.md).

This page is made from the comments in the catalogue: `make reference`.
"""

SECTIONS = {
    "producer": "Producers",
    "worker": "Workers",
    "viewer": "Viewers",
    "operator": "Operators",
    "admin": "Admins",
}

FUNCTIONS = """
select
  p.proname,
  array(select pg_get_function_arg_default(p.oid, n) from generate_series(1, p.pronargs) n),
  (p.proargnames)[1:p.pronargs],
  array(select format_type(t, null) from unnest(p.proargtypes) with ordinality a (t, n) order by n),
  pg_get_function_result(p.oid),
  obj_description(p.oid, 'pg_proc')
from pg_proc p
where p.pronamespace = 'rdq'::regnamespace
  and p.proname = any (%s)
  and p.proname not like '\\_%%'
order by p.proname, p.oid
"""

VIEWS = """
select c.relname, obj_description(c.oid, 'pg_class'), array_agg(a.attname order by a.attnum)
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v' and c.relname = any (%s)
group by c.oid, c.relname
order by c.relname
"""


def reference(connection: psycopg.Connection[Any]) -> str:
    """Return the text of the page for the schema that `connection` sees."""
    capabilities = connection.execute("select capability, names from rdq._capabilities()")
    names: dict[str, list[str]] = dict(capabilities.fetchall())
    shown: set[str] = set()
    parts = [HEAD]
    for capability, title in SECTIONS.items():
        new = [name for name in names[capability] if name not in shown]
        shown.update(new)
        parts.append(f"## {title}\n")
        for name, comment, columns in connection.execute(VIEWS, [new]):
            parts.append(f"### view `rdq.{name}`\n\n{comment}\n\nColumns: `{', '.join(columns)}`\n")
        for name, overloads in groupby(connection.execute(FUNCTIONS, [new]), lambda row: row[0]):
            parts.append(f"### `rdq.{name}`\n")
            parts.extend(_described(name, list(overloads)))
    return "\n".join(parts)


def _described(name: str, overloads: list[tuple[Any, ...]]) -> Iterator[str]:
    first: list[str] = []
    for _, defaults, argument_names, types, result, comment in overloads:
        arguments = [
            f"{argument} {_short(type_)}" + (f" default {_short(default)}" if default else "")
            for argument, type_, default in zip(argument_names or [], types, defaults, strict=True)
        ]
        # An overload is shown by what is different in it.
        shown = [a for a in arguments if a not in first] + ["…"] if first else arguments
        yield f"```sql\n{_signature(name, shown, _short(result))}\n```\n\n{comment}\n"
        first = first or arguments


def _signature(name: str, arguments: list[str], result: str) -> str:
    one_line = f"rdq.{name}({', '.join(arguments)}) returns {result}"
    if len(one_line) <= 100:
        return one_line
    listed = ",\n  ".join(arguments)
    result = textwrap.fill(result, 96, subsequent_indent="  ", break_long_words=False)
    return f"rdq.{name}(\n  {listed}\n) returns {result}"


def _short(declared: str) -> str:
    """Write types and defaults as people type them."""
    declared = re.sub(r"NULL::[a-z ]+", "null", declared)
    declared = re.sub(r"::(text|interval|jsonb|text\[\])", "", declared)
    return (
        declared.replace("timestamp with time zone", "timestamptz")
        .replace("TABLE(", "table (")
        .replace("SETOF", "setof")
    )


def main() -> None:
    """Write the page."""
    name = f"rdq_reference_{os.getpid()}"
    with obtain() as testbed:
        ensure_template(testbed.dsn)
        with psycopg.connect(testbed.dsn, autocommit=True) as server:
            clone(server, name)
            with psycopg.connect(make_conninfo(testbed.dsn, dbname=name)) as database:
                PATH.write_text(reference(database), encoding="utf-8")
            drop(server, name)


if __name__ == "__main__":
    main()
