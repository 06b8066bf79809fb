"""A stack is what Python prints, but for the marks below a part of a line."""

import json
import pickle
import re
import traceback
from collections.abc import Callable
from functools import partial

import pytest

from rdq_runner import stacks, storable
from rdq_runner.fields import members
from rdq_runner.outcomes import describe


def descend(depth: int) -> None:
    if depth > 0:
        descend(depth - 1)
    raise ValueError("at the bottom")


def caused() -> None:
    try:
        descend(0)
    except ValueError as error:
        raise KeyError("not charged") from error


def on_the_way() -> None:
    try:
        caused()
    except KeyError:
        raise TypeError("two\nlines")  # noqa: B904


def silenced() -> None:
    try:
        caused()
    except KeyError:
        raise TypeError("on purpose") from None


def in_a_circle() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    raise one


def with_a_note() -> None:
    error = ValueError("charged?")
    error.add_note("a note")
    raise error


def grouped() -> None:
    raise ExceptionGroup("both", [caught(on_the_way), ExceptionGroup("in", [caught(with_a_note)])])


def caused_by_a_group() -> None:
    try:
        grouped()
    except ExceptionGroup as error:
        raise LookupError from error


def with_a_cause_that_is_empty() -> None:
    class Errors(ValueError):
        def __len__(self) -> int:
            return 0

    try:
        raise Errors
    except Errors as error:
        raise KeyError from error


def misspelt() -> None:
    descent  # type: ignore[name-defined]  # noqa: B018, F821


def misspelt_attribute() -> None:
    _ = [].appendd  # type: ignore[attr-defined]


def misspelt_module() -> None:
    from collections import OrderedDictt  # type: ignore[attr-defined]  # noqa: F401


def without_message() -> None:
    raise ValueError


def of_two_lines() -> None:
    raise KeyError("a\nb")


def unprintable() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    raise UnprintableError


def of_no_module() -> None:
    raise type("Homeless", (Exception,), {"__module__": None})("where?")


def of_the_main_module() -> None:
    raise type("Main", (Exception,), {"__module__": "__main__"})("None")


def with_odd_notes() -> None:
    error = ValueError("odd")
    error.__notes__ = 7  # type: ignore[assignment]
    raise error


def without_source() -> None:
    exec(compile("raise ValueError('out of nowhere')", "<nowhere>", "exec"))


def caught(function: Callable[[], object]) -> Exception:
    """Return what a function raises."""
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "function",
    [
        *[partial(descend, depth) for depth in (0, 2, 3, 4, 50)],
        caused,
        on_the_way,
        silenced,
        in_a_circle,
        with_a_note,
        grouped,
        caused_by_a_group,
        with_a_cause_that_is_empty,
        misspelt,
        misspelt_attribute,
        misspelt_module,
        without_message,
        of_two_lines,
        unprintable,
        of_no_module,
        of_the_main_module,
        with_odd_notes,
        without_source,
    ],
)
def test_a_stack_is_what_python_prints_without_its_marks(function: Callable[[], object]) -> None:
    error = caught(function)
    lines = "".join(traceback.format_exception(error)).splitlines(keepends=True)
    unmarked = [line for line in lines if not re.fullmatch(r"[ |]+[~^]+\n", line)]
    for _ in range(2):  # the second time from what is kept
        assert stacks.stack(error) == "".join(unmarked)


def test_the_mark_of_bad_syntax_is_kept() -> None:
    error = caught(partial(compile, "1 +* 2", "<nowhere>", "exec"))
    assert stacks.stack(error).endswith("    1 +* 2\n       ^\nSyntaxError: invalid syntax\n")


def test_an_exception_that_was_never_raised_has_no_frames() -> None:
    assert stacks.stack(ValueError("alone")) == "ValueError: alone\n"


def test_what_is_kept_of_a_stack_is_its_form_in_json() -> None:
    for function in (on_the_way, without_source, partial(descend, 4)):
        for _ in range(2):
            stack = stacks.stack(caught(function))
            assert members({"stack": stack}) == f'"stack": {json.dumps(stack)}'


def test_a_stack_goes_to_another_process_as_text() -> None:
    stack = stacks.stack(caught(caused))
    copy = pickle.loads(pickle.dumps(stack))
    assert copy == stack
    assert type(copy) is str


def test_stacks_that_differ_in_a_line_are_told_apart() -> None:
    def fail(first: bool) -> None:
        if first:
            raise ValueError
        raise ValueError

    one, other = (caught(partial(fail, first)) for first in (True, False))
    numbers = [error.__traceback__.tb_next.tb_lineno for error in (one, other)]  # type: ignore[union-attr]
    for _ in range(2):
        for error, number in zip((one, other), numbers, strict=True):
            assert f"line {number}, in fail" in stacks.stack(error)


def test_the_text_of_tracebacks_that_is_kept_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "_MOST_TRACES", 10)
    kept: dict[object, object] = {}
    monkeypatch.setattr(stacks, "_traces", kept)
    for number in range(30):
        code = compile("raise ValueError", f"<{number}>", "exec")
        error = caught(partial(exec, code))
        assert f'File "<{number}>"' in stacks.stack(error)
        assert 0 < len(kept) <= 10


def test_a_long_line_of_a_stack_is_cut_as_a_message_is() -> None:
    stack = describe(ValueError("é" * 10_000)).stack
    assert stack is not None
    assert stack.endswith(storable.CUT)
    assert len(stack.encode()) <= storable.MESSAGE_BYTES
