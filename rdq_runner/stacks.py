"""The stack of an exception, as Python prints it but for the marks below a part of a line.

Those marks take most of the time that `traceback` needs: it parses each line anew. And a frame of a
stack is the same in the next failure, so its text is kept. So a stack of 27 lines takes a fifteenth
of the time; that is what a retry storm cost a runner most.
"""

import linecache
from itertools import groupby
from traceback import StackSummary, TracebackException
from types import FrameType, TracebackType
from typing import Any, Final

from rdq_runner import storable

# As `traceback` has them.
_BEGINNING: Final = "Traceback (most recent call last):\n"
_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"
_REPEATS: Final = 3

_MOST_FRAMES: Final = 10_000

_frames: dict[tuple[str, int | None, str], str] = {}


def stack(error: BaseException) -> str:
    """Return the stack of an exception, with those of its causes and parts, storable.

    :raises Exception: what the exception's own code raises.
    """
    # Without frames: the rest is little, and `traceback` knows best how to write it.
    described = TracebackException(
        type(error), error, error.__traceback__, limit=0, lookup_lines=False, compact=True
    )
    parts: list[list[str]] = []
    part, its_error = described, error
    while True:
        if part.exceptions is not None:
            return _with_groups(described, error)
        frames = _Frames(its_error.__traceback__).format()
        beginning = [_BEGINNING] if frames else []
        parts.append([*beginning, *frames, *part.format_exception_only()])
        cause, context = its_error.__cause__, its_error.__context__
        if part.__cause__ and cause is not None:
            parts.append([_CAUSE])
            part, its_error = part.__cause__, cause
        elif part.__context__ and context is not None:
            parts.append([_CONTEXT])
            part, its_error = part.__context__, context
        else:
            break
    return storable.stack([line for lines in reversed(parts) for line in lines])


def _with_groups(described: TracebackException, error: BaseException) -> str:
    """Return a stack with groups in it, which `traceback` draws as a tree."""
    todo: list[tuple[TracebackException | None, Any]] = [(described, error)]
    while todo:
        part, its_error = todo.pop()
        if part:
            part.stack = _Frames(its_error.__traceback__)
            todo.append((part.__cause__, its_error.__cause__))
            todo.append((part.__context__, its_error.__context__))
            if part.exceptions is not None:
                todo += zip(part.exceptions, its_error.exceptions, strict=True)
    return storable.stack([*described.format()])


class _Frames(StackSummary):
    """The lines of a traceback."""

    def __init__(self, traceback: TracebackType | None) -> None:
        super().__init__()
        self._lines: list[str] = []
        while traceback:
            self._lines.append(_frame(traceback.tb_frame, traceback.tb_lineno))
            traceback = traceback.tb_next

    def __bool__(self) -> bool:
        return bool(self._lines)

    def format(self, **_: object) -> list[str]:
        """Return them, those that repeat folded."""
        lines = []
        for line, same in groupby(self._lines):
            count = len([*same])
            lines += [line] * min(count, _REPEATS)
            if (more := count - _REPEATS) > 0:
                lines.append(f"  [Previous line repeated {more} more time{'s'[: more > 1]}]\n")
        return lines


def _frame(frame: FrameType, line: int | None) -> str:
    code = frame.f_code
    key = (code.co_filename, line, code.co_name)
    text = _frames.get(key)
    if text is None:
        if len(_frames) >= _MOST_FRAMES:
            _frames.clear()
        text = _frames[key] = _written(frame, *key)
    return text


def _written(frame: FrameType, path: str, line: int | None, function: str) -> str:
    text = f'  File "{path}", line {line}, in {function}\n'
    if line is None:
        return text
    linecache.lazycache(path, frame.f_globals)
    source = linecache.getline(path, line).strip()
    return f"{text}    {source}\n" if source else text
