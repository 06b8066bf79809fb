"""What the demo prints: headings, sentences, SQL that can be pasted in psql, tables like psql's."""

import textwrap
from collections.abc import Sequence
from decimal import Decimal

WIDTH = 100
INDENT = "    "
CELL = 46


def heading(text: str) -> None:
    """Begin an act."""
    print(f"\n\n{text}\n{'=' * len(text)}", flush=True)


def say(text: str) -> None:
    """Print a paragraph."""
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    print("", *lines, sep="\n", flush=True)


def show(text: str) -> None:
    """Print lines as they are, indented: SQL, a command, a result."""
    print(f"\n{textwrap.indent(text.rstrip(), INDENT)}", flush=True)


def note(text: str, end: str = "\n") -> None:
    """Print a line about what happens in the background."""
    print(f"\n{INDENT}-- {text}", end=end, flush=True)


def command(text: str) -> str:
    """Lay out a long command for the shell."""
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return " \\\n".join(lines)


def result(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay out the rows of a query: a single value by itself and whole, others as a table."""
    if len(columns) == len(rows) == 1:
        value = _text(rows[0][0])
        return value if "\n" in value else f"{columns[0]}: {value}"
    return table(columns, rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay out rows as psql does: numbers to the right, null as nothing. Long texts are cut."""
    texts = [
        [textwrap.shorten(_text(value), CELL, placeholder="...") for value in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    lines = [
        " | ".join(map(str.center, columns, widths)),
        "-+-".join("-" * width for width in widths),
        *(
            " | ".join(map(_aligned, row, line, widths))
            for row, line in zip(rows, texts, strict=True)
        ),
        f"({len(rows)} row{'' if len(rows) == 1 else 's'})",
    ]
    return "\n".join(line.rstrip() for line in lines)


def _aligned(value: object, text: str, width: int) -> str:
    return text.rjust(width) if isinstance(value, int | float | Decimal) else text.ljust(width)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
