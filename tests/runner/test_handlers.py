"""Registering handlers, and finding them."""

import functools
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from rdq_runner import Handlers, Runner, Task
from rdq_runner.handlers import HandlersError, load


async def coroutine(task: Task) -> None: ...


def generator(task: Task) -> Iterator[int]:
    yield 1


async def async_generator(task: Task) -> AsyncIterator[int]:
    yield 1


def without_a_task() -> None: ...


def with_too_much(task: Task, amount: int) -> None: ...


class AsyncCallable:
    async def __call__(self, task: Task) -> None: ...


class Charge:
    def __call__(self, task: Task) -> None: ...

    def method(self, task: Task, amount: int = 0) -> None: ...


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (async_generator, "is a generator"),
        (generator, "is a generator"),
        (without_a_task, "cannot be called with one task"),
        (with_too_much, "cannot be called with one task"),
    ],
)
def test_what_cannot_run_a_task_is_refused_when_it_is_registered(
    function: Callable[..., object], complaint: str
) -> None:
    with pytest.raises(TypeError, match=f"'charge' {complaint}"):
        Handlers().handler("charge")(function)


@pytest.mark.parametrize(
    "function",
    [
        Charge(),
        Charge().method,
        print,
        lambda task: None,
        coroutine,
        functools.partial(coroutine),
        AsyncCallable(),
    ],
)
def test_whatever_takes_a_task_is_a_handler(function: Callable[..., object]) -> None:
    handlers = Handlers()
    assert handlers.handler("charge")(function) is function
    assert handlers["charge"] is function


def test_a_name_is_taken_once() -> None:
    handlers = Handlers()
    handlers.handler("charge")(print)
    with pytest.raises(ValueError, match="'charge' is registered twice"):
        handlers.handler("charge")(print)


@pytest.mark.parametrize("name", ["", "Charge", "-charge", "charge me", "charge\n", "c" * 241])
def test_a_name_has_the_form_of_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a handler"):
        Handlers().handler(name)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Write a module that can be imported, once; return its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str) -> str:
        (tmp_path / "myapp_handlers.py").write_text(dedent(source))
        return "myapp_handlers"

    yield write
    sys.modules.pop("myapp_handlers", None)


def test_a_module_gives_its_attribute_handlers(module: Callable[[str], str]) -> None:
    name = module("from rdq_runner import Handlers\nhandlers = Handlers()\nothers = Handlers()")
    assert load(name) is sys.modules[name].handlers
    assert load(f"{name}:others") is sys.modules[name].others


def test_a_module_gives_its_only_handlers_whatever_their_name(module: Callable[[str], str]) -> None:
    name = module("from rdq_runner import Handlers\ntasks = jobs = Handlers()")
    assert load(name) is sys.modules[name].tasks


@pytest.mark.parametrize(
    ("source", "attribute", "complaint"),
    [
        ("", "", "has no Handlers objects"),
        ("from rdq_runner import Handlers\na, b = Handlers(), Handlers()", "", "has 2 Handlers"),
        ("from rdq_runner import Handlers\na = Handlers()", ":b", "'myapp_handlers:b' is not"),
        ("charge = print", ":charge", "'myapp_handlers:charge' is not"),
    ],
)
def test_a_module_without_handlers_is_refused(
    module: Callable[[str], str], source: str, attribute: str, complaint: str
) -> None:
    with pytest.raises(HandlersError, match=complaint):
        load(module(source) + attribute)


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(HandlersError, match="there is no module 'no_such_app'"):
        load("no_such_app.handlers")


def test_an_import_that_fails_within_the_module_is_shown_as_it_is(
    module: Callable[[str], str],
) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load(module("import no_such_library"))


def with_a_connection(task: Task, connection: object) -> None: ...


async def with_a_connection_too(task: Task, connection: object) -> None: ...


@pytest.mark.parametrize("function", [with_a_connection, with_a_connection_too])
def test_a_transactional_handler_takes_a_connection(function: Callable[..., object]) -> None:
    handlers = Handlers()
    handlers.handler("charge", transactional=True)(function)
    with pytest.raises(TypeError, match="cannot be called with one task"):
        handlers.handler("refund")(function)
    with pytest.raises(TypeError, match="cannot be called with one task and a connection"):
        handlers.handler("refund", transactional=True)(coroutine)


@pytest.mark.parametrize(
    ("function", "options", "complaint"),
    [
        (print, {"concurrency": 0}, "concurrency is 0"),
        (print, {"timeout": 0}, "timeout is 0"),
        (print, {"timeout": float("nan")}, "timeout is nan"),
        (print, {"timeout": timedelta(days=-1)}, "timeout is -86400"),
        (print, {"isolation": "fork"}, "isolation is 'fork': give one of thread, process"),
        (coroutine, {"isolation": "process"}, "an async function has no process of its own"),
        (
            with_a_connection,
            {"isolation": "process", "transactional": True},
            "cannot be in another process",
        ),
        (print, {"memory_limit": 1 << 30}, "give isolation='process' too"),
        (print, {"memory_limit": 0, "isolation": "process"}, "memory_limit is 0"),
        (print, {"errors": {"ValueError": "PERMANENT"}}, "'ValueError', which is not a class"),
        (print, {"errors": {ValueError: "permanent"}}, "'permanent': give one of TRANSIENT"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    function: Callable[..., object], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Handlers().handler("charge", **options)(function)


def test_a_function_that_a_child_cannot_find_is_refused_before_any_claim() -> None:
    handlers = Handlers()
    handlers.handler("charge", isolation="process")(lambda task: None)
    with pytest.raises(HandlersError, match="'charge' cannot be given to a child process"):
        Runner(queues=["q"], handlers=handlers)
