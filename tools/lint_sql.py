"""Lints sql/ and migrations/: what PostgreSQL's own parser shows without a server.

- every file parses
- keywords and names are in lower case, in the bodies of functions too
- every function is in a schema, and one that is `security definer` pins its search_path
- no tabs, no blanks at the end of a line
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pglast import ast, parse_sql
from pglast.parser import ParseError, scan

from rdq_runner import schema


def main() -> int:
    """Print what is wrong, a line each, and return 1 if anything is."""
    files = sorted([*schema.SQL.glob("*.sql"), *schema.MIGRATIONS.glob("*.sql")])
    problems = [f"{file.name}:{problem}" for file in files for problem in _lint(file)]
    for problem in problems:
        print(problem)
    print(f"{len(files)} SQL files, {len(problems)} problems")
    return 1 if problems else 0


def _lint(file: Path) -> Iterator[str]:
    # What only psql understands, kept as a line so that the numbers stay right.
    text = re.sub(r"^\\.*", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line or line != line.rstrip():
            yield f"{number}: tab, or blank at the end"
    try:
        yield from _upper_case(text)
        for raw in parse_sql(text):
            if isinstance(raw.stmt, ast.CreateFunctionStmt):
                yield from _function(raw.stmt, text, raw.stmt_location or 0)
    except ParseError as error:
        message, position = error.args
        yield f"{_line(text, position)}: {message}"


def _function(function: Any, text: str, location: int) -> Iterator[str]:
    name = ".".join(part.sval for part in function.funcname)
    options = [(option.defname, option.arg) for option in function.options]
    pinned = any(key == "set" and value.name == "search_path" for key, value in options)
    body = next((value[0].sval for key, value in options if key == "as"), "")
    start = max(location, text.find(body, location))
    if len(function.funcname) == 1:
        yield f"{_line(text, start)}: {name} is in no schema"
    if any(key == "security" for key, _ in options) and not pinned:
        yield f"{_line(text, start)}: {name} is security definer and pins no search_path"
    yield from _upper_case(body, _line(text, start))


def _upper_case(text: str, first_line: int = 1) -> Iterator[str]:
    for token in scan(text):
        word = text[token.start : token.end + 1]
        if word.isidentifier() and word != word.lower():
            yield f"{first_line + _line(text, token.start) - 1}: {word} is not in lower case"


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


if __name__ == "__main__":
    sys.exit(main())
