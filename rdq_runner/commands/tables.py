"""Tables for people: in a terminal as wide as it is, elsewhere plain lines with aligned columns."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rdq_runner.commands.values import words

Row = Mapping[str, Any]

STYLES: Final = {
    "RUNNING": "green",
    "DONE": "green",
    "SUCCEEDED": "green",
    "IN_FLIGHT": "cyan",
    "PAUSED": "yellow",
    "CANCELLED": "yellow",
    "AMBIGUOUS": "yellow",
    "HALTED": "bold red",
    "DEAD": "red",
    "FAILED": "red",
    "PERMANENT": "red",
    "LEASE_EXPIRED": "magenta",
}

# Free text, which is cut where there is no room; anything else is shown whole or not at all: half a
# number is a wrong one.
_FREE: Final = frozenset({"message", "sample_message", "reason", "state_reason"})
_FREE_WIDTH: Final = 14
# Keys are copied, so they are whole; a name may be long.
_KEYS: Final = frozenset({"task_id", "redrive_id", "sample_task_id"})
_NAME_WIDTH: Final = 40
# Between two columns; the edges of a table are as wide.
_GAP: Final = 2


def console(*, err: bool = False) -> Console:
    """Return the terminal, or what stands for it; nothing is read as markup."""
    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def plain_lines(rows: Sequence[Row], columns: Sequence[str], now: datetime) -> str:
    """Return aligned lines, a header first.

    :param columns: of the rows; the rows are at least one.
    """
    texts = _texts(rows, columns, now)
    lines = zip(*(_padded(name, texts[name], rows) for name in columns), strict=True)
    return "\n".join((" " * _GAP).join(line).rstrip() for line in lines)


def drawn(rows: Sequence[Row], columns: Sequence[str], now: datetime, room: int) -> RenderableType:
    """Return a table for a terminal; the last columns are left out where there is no room.

    :param room: characters in a line.
    """
    texts = _texts(rows, columns, now)
    widths = _fitting({name: _width(name, texts[name]) for name in columns}, room)
    shown = list(widths)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, width in widths.items():
        right = _is_number(name, rows)
        table.add_column(name, justify="right" if right else "left", no_wrap=True, width=width)
    for place in range(len(rows)):
        cells = (texts[name][place + 1] for name in shown)
        table.add_row(*(Text(cell, STYLES.get(cell, "")) for cell in cells))
    left_out = [name for name in columns if name not in shown]
    if not left_out:
        return table
    return Group(table, Text(f"no room for {', '.join(left_out)}: see --wide", "dim"))


def record(row: Row, now: datetime) -> Text:
    """Return one thing, a line for each of its columns; a text of many lines keeps them."""
    width = max(map(len, row)) + _GAP
    lines = []
    for name, value in row.items():
        text = words(name, value, now, whole=True)
        shown = text.replace("\n", "\n" + " " * width)
        lines.append(Text.assemble((f"{name:<{width}}", "bold"), (shown, STYLES.get(text, ""))))
    return Text("\n").join(lines)


def _texts(rows: Sequence[Row], columns: Sequence[str], now: datetime) -> dict[str, list[str]]:
    """Return the columns as texts, each with its name first."""
    return {name: [name, *(words(name, row[name], now) for row in rows)] for name in columns}


def _fitting(wanted: Mapping[str, int], room: int) -> dict[str, int]:
    """Return the columns that have room, with their widths; free text gets what the others leave.

    :param wanted: how wide each column would be.
    """
    least = {name: min(width, _FREE_WIDTH) for name, width in wanted.items() if name in _FREE}
    left = room - sum(width + _GAP for width in least.values())
    widths: dict[str, int] = {}
    full = False
    for name, width in wanted.items():
        # The first one in any case.
        full = full or (name not in least and left < width + _GAP and bool(widths))
        if name in least:
            widths[name] = least[name]
        elif not full:
            widths[name] = width
            left -= width + _GAP
    for name in least:
        more = min(max(left, 0), wanted[name] - widths[name])
        widths[name] += more
        left -= more
    return widths


def _width(name: str, texts: Sequence[str]) -> int:
    width = max(map(cell_len, texts))
    return width if name in _FREE or name in _KEYS else min(width, _NAME_WIDTH)


def _padded(name: str, texts: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    width = max(map(cell_len, texts))
    right = _is_number(name, rows)
    for text in texts:
        space = " " * (width - cell_len(text))
        yield space + text if right else text + space


def _is_number(name: str, rows: Sequence[Row]) -> bool:
    given = [row[name] for row in rows if row[name] is not None]
    return bool(given) and isinstance(given[0], int | float) and not isinstance(given[0], bool)
