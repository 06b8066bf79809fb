"""The functions that run tasks, under stable names."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from rdq_runner.task import Task

Handler = Callable[[Task], object]
F = TypeVar("F", bound=Handler)

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,239}")


class HandlersError(Exception):
    """What ``--handlers`` names does not hold handlers; the message says what was looked for."""


class Handlers(Mapping[str, Handler]):
    """Handlers by name::

        handlers = Handlers()

        @handlers.handler("charge")
        def charge(task: Task) -> None:
            ...

    A handler that returns has succeeded, whatever it returns; one that raises has failed.
    """

    def __init__(self) -> None:
        self._functions: dict[str, Handler] = {}

    def handler(self, name: str) -> Callable[[F], F]:
        """Register a function that takes a `Task`.

        :raises ValueError: the name is not one, or is taken.
        :raises TypeError: the function cannot be called with one task and run to its end by that.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not the name of a handler: 1 to 240 of a-z, 0-9, dot, underscore and"
                " hyphen, beginning with a letter or a digit"
            )

        def register(function: F) -> F:
            if name in self._functions:
                raise ValueError(f"handler {name!r} is registered twice")
            _check(name, function)
            self._functions[name] = function
            return function

        return register

    def __getitem__(self, name: str) -> Handler:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


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


def _check(name: str, function: Handler) -> None:
    for candidate in (function, type(function).__call__):
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise TypeError(f"handler {name!r} is async; this runner runs plain functions")
        if inspect.isgeneratorfunction(candidate):
            raise TypeError(f"handler {name!r} is a generator: calling it would run nothing of it")
    try:
        inspect.signature(function).bind(None)
    except ValueError:
        return  # a callable of C that does not tell
    except TypeError as error:
        raise TypeError(f"handler {name!r} cannot be called with one task: {error}") from error
