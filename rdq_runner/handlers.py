"""The functions that run tasks, under stable names, and how each of them is to be run."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal, TypeVar, get_args, overload

from rdq_runner.outcomes import ErrorClass
from rdq_runner.task import Task

# What a handler takes is checked when it is registered: a task, and a connection where it is
# transactional.
Handler = Callable[..., object]
Isolation = Literal["thread", "process"]
F = TypeVar("F", bound=Callable[[Task], object])
H = TypeVar("H", bound=Handler)

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,239}")
# Ten years, as in SQL: what a lock can be waited for has a limit.
_LONGEST_TIMEOUT_SECONDS: Final = 315_576_000


class HandlersError(Exception):
    """What ``--handlers`` names does not hold handlers; the message says what was looked for."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A handler and its options, as `Handlers.handler` takes them; `timeout` is in seconds."""

    name: str
    function: Handler
    is_async: bool
    concurrency: int | None = None
    timeout: float | None = None
    isolation: Isolation = "thread"
    transactional: bool = False
    errors: Mapping[type[BaseException], ErrorClass] = field(default_factory=dict)
    version: str | None = None
    memory_limit: int | None = None


class Handlers(Mapping[str, Handler]):
    """Handlers by name::

        handlers = Handlers()

        @handlers.handler("charge")
        def charge(task: Task) -> None:
            ...

    A handler that returns has succeeded, whatever it returns; one that raises has failed.
    """

    def __init__(self) -> None:
        self._registrations: dict[str, Registration] = {}

    @overload
    def handler(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        timeout: float | timedelta | None = None,
        isolation: Isolation = "thread",
        transactional: Literal[False] = False,
        errors: Mapping[type[BaseException], ErrorClass] | None = None,
        version: str | None = None,
        memory_limit: int | None = None,
    ) -> Callable[[F], F]: ...

    @overload
    def handler(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        timeout: float | timedelta | None = None,
        isolation: Isolation = "thread",
        transactional: bool,
        errors: Mapping[type[BaseException], ErrorClass] | None = None,
        version: str | None = None,
        memory_limit: int | None = None,
    ) -> Callable[[H], H]: ...

    def handler(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        timeout: float | timedelta | None = None,
        isolation: Isolation = "thread",
        transactional: bool = False,
        errors: Mapping[type[BaseException], ErrorClass] | None = None,
        version: str | None = None,
        memory_limit: int | None = None,
    ) -> Callable[[H], H]:
        """Register a function, sync or async, that takes a `Task`.

        :param concurrency: so many of this handler run at once in a runner, at most.
        :param timeout: seconds or a timedelta; None means the queue's ``handler_timeout``.
        :param isolation: "process" runs it in a child process, which may crash and can be killed.
        :param transactional: it takes a connection of psycopg too, and what it does there is
            committed together with the completion of the task, or not at all.
        :param errors: the class of exceptions; the nearest base class of an exception counts.
        :param version: of the code; a task that was submitted for another ``handler_version`` goes
            by the queue's ``on_version_mismatch``.
        :param memory_limit: bytes of address space of the child process.
        :raises ValueError: the name is not one, or is taken; an option's value is not one.
        :raises TypeError: the function cannot be called so and run to its end by that.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a handler: 1 to 240 of a-z, 0-9, dot, underscore and"
                " hyphen, beginning with a letter or a digit"
            )
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout

        def register(function: H) -> H:
            if name in self._registrations:
                raise ValueError(f"handler {name!r} is registered twice")
            registration = Registration(
                name=name,
                function=function,
                is_async=_is_async(function),
                concurrency=concurrency,
                timeout=seconds,
                isolation=isolation,
                transactional=transactional,
                errors=dict(errors or {}),
                version=version,
                memory_limit=memory_limit,
            )
            _check_function(registration)
            for complaint in _complaints(registration):
                raise ValueError(f"handler {name!r}: {complaint}")
            self._registrations[name] = registration
            return function

        return register

    def registration(self, name: str) -> Registration:
        """Return a handler with its options.

        :raises KeyError: there is none of that name.
        """
        return self._registrations[name]

    def registrations(self) -> list[Registration]:
        """Return all handlers with their options."""
        return list(self._registrations.values())

    def limits(self) -> dict[str, int]:
        """Return how many run at once of those handlers that have a limit."""
        return {
            handler.name: handler.concurrency
            for handler in self._registrations.values()
            if handler.concurrency is not None
        }

    def __getitem__(self, name: str) -> Handler:
        return self._registrations[name].function

    def __iter__(self) -> Iterator[str]:
        return iter(self._registrations)

    def __len__(self) -> int:
        return len(self._registrations)


def load(source: str) -> Handlers:
    """Return the handlers of ``package.module:attribute``.

    Without an attribute: the module's ``handlers``, or else the only `Handlers` in it.

    :raises HandlersError: there is no such module, or it holds no handlers there.
    :raises Exception: whatever the module raises when it is imported.
    """
    module_name, _, attribute = source.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # What is missing may be a module that the handlers import: not ours to explain.
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise HandlersError(f"there is no module {error.name!r} (looked for {source!r})") from error
    found = getattr(module, attribute or "handlers", None)
    if isinstance(found, Handlers):
        return found
    if attribute:
        raise HandlersError(f"{source!r} is not a Handlers object")
    # By identity, since one object may have several names in a module.
    candidates = {
        id(value): value for value in vars(module).values() if isinstance(value, Handlers)
    }
    if len(candidates) != 1:
        raise HandlersError(
            f"module {module_name!r} has {len(candidates) or 'no'} Handlers objects:"
            f" name one as {module_name}:attribute"
        )
    return candidates.popitem()[1]


def _is_async(function: Handler) -> bool:
    return any(
        inspect.iscoroutinefunction(candidate) for candidate in (function, type(function).__call__)
    )


def _check_function(handler: Registration) -> None:
    for candidate in (handler.function, type(handler.function).__call__):
        if inspect.isgeneratorfunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise TypeError(f"handler {handler.name!r} is a generator, which nobody would run")
    try:
        signature = inspect.signature(handler.function)
    except ValueError:  # as of some builtins
        return
    arguments = ["task", "connection"] if handler.transactional else ["task"]
    try:
        signature.bind(*arguments)
    except TypeError as error:
        what = "one task and a connection" if handler.transactional else "one task"
        raise TypeError(f"handler {handler.name!r} cannot be called with {what}: {error}") from None


def _complaints(handler: Registration) -> Iterator[str]:
    if handler.concurrency is not None and handler.concurrency < 1:
        yield f"concurrency is {handler.concurrency}: give at least 1"
    # A comparison that NaN fails too.
    if handler.timeout is not None and not 0 < handler.timeout <= _LONGEST_TIMEOUT_SECONDS:
        yield f"timeout is {handler.timeout}: give seconds above 0"
    if handler.isolation not in get_args(Isolation):
        yield f"isolation is {handler.isolation!r}: give one of {', '.join(get_args(Isolation))}"
    if handler.isolation == "process":
        if handler.is_async:
            yield "an async function has no process of its own: give a plain one"
        if handler.transactional:
            yield "a transaction is the runner's, so its handler cannot be in another process"
    elif handler.memory_limit is not None:
        yield "memory_limit is of a child process: give isolation='process' too"
    if handler.memory_limit is not None and handler.memory_limit < 1:
        yield f"memory_limit is {handler.memory_limit}: give bytes"
    for kind, name in handler.errors.items():
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            yield f"errors has {kind!r}, which is not a class of exceptions"
        if name not in get_args(ErrorClass):
            yield f"errors has {name!r}: give one of {', '.join(get_args(ErrorClass))}"
