"""The stack of an exception, as Python prints it but for the marks below a part of a line.

Those marks take most of the time that `traceback` needs: it parses each line anew. And where an
attempt has failed the next one fails as well: so the text of a traceback is kept, with its form in
JSON. So a stack of 27 lines takes a twentieth of the time; that is what a retry storm cost a runner
most.
"""

import linecache
from itertools import groupby
from traceback import StackSummary, TracebackException, walk_tb
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, NamedTuple

from rdq_runner import storable
from rdq_runner.fields import Written

# As `traceback` has them.
_BEGINNING: Final = "Traceback (most recent call last):\n"
_CAUSE: Final = Written(
    "\nThe above exception was the direct cause of the following exception:\n\n"
)
_CONTEXT: Final = Written(
    "\nDuring handling of the above exception, another exception occurred:\n\n"
)
_NONE: Final = Written("")
# Of these it may say where they are, or what may have been meant.
_WITH_MORE: Final = (BaseExceptionGroup, SyntaxError, NameError, AttributeError, ImportError)
_REPEATS: Final = 3

_MOST_TRACES: Final = 500


class _Kept(NamedTuple):
    text: Written
    codes: list[CodeType]
    """Kept too, so that no other code gets the id of one."""


# By ids of codes and numbers of lines. To hash a code takes as long as to write its line.
_traces: dict[tuple[int | None, ...], _Kept] = {}


def stack(error: BaseException) -> str:
    """Return the stack of an exception, with those of its causes and parts, storable.

    :raises Exception: what the exception's own code raises.
    """
    if line := _only_line(error):
        texts = [_trace(error.__traceback__), Written(storable.lines([line]))]
        return storable.ends(Written.joined(texts))
    # Without frames: the rest is little, and `traceback` knows best how to write it.
    described = TracebackException(
        type(error), error, error.__traceback__, limit=0, lookup_lines=False, compact=True
    )
    texts = []
    part, its_error = described, error
    while True:
        if part.exceptions is not None:
            return _with_groups(described, error)
        texts.append(Written(storable.lines([*part.format_exception_only()])))
        texts.append(_trace(its_error.__traceback__))
        cause, context = its_error.__cause__, its_error.__context__
        if part.__cause__ and cause is not None:
            texts.append(_CAUSE)
            part, its_error = part.__cause__, cause
        elif part.__context__ and context is not None:
            texts.append(_CONTEXT)
            part, its_error = part.__context__, context
        else:
            break
    texts.reverse()
    return storable.ends(Written.joined(texts))


def _only_line(error: BaseException) -> str | None:
    """Return what is below a traceback, None where that may be more than a line.

    For a line alone `TracebackException` takes long.
    """
    kind = type(error)
    module = kind.__module__
    if (
        error.__cause__ is not None
        or (error.__context__ is not None and not error.__suppress_context__)
        or getattr(error, "__notes__", None) is not None
        or issubclass(kind, _WITH_MORE)
        or not isinstance(module, str)
    ):
        return None
    try:
        message = str(error)
    except BaseException:
        return None
    name = kind.__qualname__
    if module not in ("__main__", "builtins"):
        name = f"{module}.{name}"
    return f"{name}: {message}\n" if message else f"{name}\n"


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


def _trace(traceback: TracebackType | None) -> Written:
    """Return the text of a traceback, empty if there is none."""
    if traceback is None:
        return _NONE
    key: list[int | None] = []
    below: TracebackType | None = traceback
    while below:
        key += (id(below.tb_frame.f_code), below.tb_lineno)
        below = below.tb_next
    kept = _traces.get(tuple(key))
    if kept:
        return kept.text
    text = Written(storable.lines([_BEGINNING, *_Frames(traceback).format()]))
    if len(text) <= storable.STACK_BYTES:
        if len(_traces) >= _MOST_TRACES:
            _traces.clear()
        codes = [frame.f_code for frame, _ in walk_tb(traceback)]
        _traces[tuple(key)] = _Kept(text, codes)
    return text


class _Frames(StackSummary):
    """The lines of a traceback."""

    def __init__(self, traceback: TracebackType) -> None:
        super().__init__()
        self._lines = [_line(frame, number) for frame, number in walk_tb(traceback)]

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


def _line(frame: FrameType, number: int | None) -> str:
    path = frame.f_code.co_filename
    text = f'  File "{path}", line {number}, in {frame.f_code.co_name}\n'
    if number is None:
        return text
    linecache.lazycache(path, frame.f_globals)
    source = linecache.getline(path, number).strip()
    return f"{text}    {source}\n" if source else text
