"""How an attempt ended, and how an exception becomes the record of a failure.

The class of an error decides what happens next:

- TRANSIENT: another attempt has a really different chance.
- PERMANENT: the outcome is fixed by the input; the task is dead at once.
- AMBIGUOUS: the effect may have happened; a small budget of its own.

A handler says which by raising `Transient`, `Permanent` or `Ambiguous`, or by the mapping that it
was registered with. Builtin exceptions with a known meaning have theirs (see `_CLASSES`); any other
goes by the queue's rules, in the database.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeVar, cast
from urllib.error import URLError

from rdq_runner import stacks, storable
from rdq_runner.storable import Json

T = TypeVar("T")
ErrorClass = Literal["TRANSIENT", "PERMANENT", "AMBIGUOUS"]

_TYPE_BYTES: Final = 255
_UNAVAILABLE: Final = "details unavailable"
_LONGEST_WAIT_SECONDS: Final = 1e9


class HandlerError(Exception):
    """What a handler raises to say more about its failure than a builtin exception does.

    :param message: for people; kept with the attempt, at most 4 KiB.
    :param retry_after: wait at least so long, in seconds or as a timedelta; the database caps it.
    :param detail: anything more, as JSON; at most 16 KiB.
    """

    retry_after: float | timedelta | None = None
    detail: object = None

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: float | timedelta | None = None,
        detail: object = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.detail = detail


class Transient(HandlerError):
    """Another attempt has a really different chance."""


class Permanent(HandlerError):
    """No attempt can succeed with this input: a dead letter at once."""


class Ambiguous(HandlerError):
    """The effect may have happened."""


class MalformedPayload(Permanent):
    """The payload is not what the handler reads it as."""


class Cancelled(Exception):
    """Raised by a handler that stops because of `Task.cancelled`: the task is released, at no cost.

    While `Task.cancelled` is false it is a failure like any other.
    """


Classes = Mapping[type[BaseException], ErrorClass]

_SAID: Final[Classes] = {
    Transient: "TRANSIENT",
    Permanent: "PERMANENT",
    Ambiguous: "AMBIGUOUS",
}

# A timeout is TRANSIENT although something may have been sent before it: the handler knows, and
# says Ambiguous then. A connection that broke had been open, so something probably was sent.
_CLASSES: Final[Classes] = {
    ConnectionRefusedError: "TRANSIENT",
    socket.gaierror: "TRANSIENT",
    TimeoutError: "TRANSIENT",
    BrokenPipeError: "AMBIGUOUS",
    ConnectionResetError: "AMBIGUOUS",
    ConnectionAbortedError: "AMBIGUOUS",
}


# None, which leaves it to the queue's rules, before TRANSIENT: that one knows nothing of the other.
_STRICTEST: Final = ("PERMANENT", "AMBIGUOUS", None, "TRANSIENT")


@dataclass(frozen=True, slots=True)
class Success:
    """The handler returned."""


@dataclass(frozen=True, slots=True)
class Release:
    """The task is handed back.

    :param delay: in seconds.
    :param warning: the runner's own trouble is why, which somebody should look at.
    """

    reason: str
    delay: float = 0.0
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """The handler raised. Every field is storable; `retry_after` is in seconds."""

    type: str
    message: str = _UNAVAILABLE
    stack: str | None = None
    detail: Json = None
    error_class: ErrorClass | None = None
    retry_after: float | None = None

    def document(self) -> dict[str, Json]:
        """Return the failure as ``rdq.report`` takes it."""
        return {
            "type": self.type,
            "message": self.message,
            "stack": self.stack,
            "detail": self.detail,
            "class": self.error_class,
            "retry_after": self.retry_after,
        }

    def minimal(self) -> "Failure":
        """Return what is left to say when the database refuses more: no text of the handler's."""
        return Failure(self.type.encode("ascii", "replace").decode(), error_class=self.error_class)


@dataclass(frozen=True, slots=True)
class Committed:
    """The handler's own transaction has completed the task: there is nothing left to report."""


Outcome = Success | Failure | Release | Committed


def describe(error: BaseException, errors: Classes = MappingProxyType({})) -> Failure:
    """Describe an exception, whatever it is: what cannot be read of it is left out.

    Of an exception group the longest `retry_after` counts, and the first `detail`.
    """
    said = [cast(HandlerError, e) for e in leaves(error) if issubclass(type(e), HandlerError)]
    return Failure(
        type=_or("unknown", lambda: _type_name(type(error))),
        message=_or(_UNAVAILABLE, lambda: storable.text(str(error))),
        stack=_or(None, lambda: stacks.stack(error)),
        detail=next(_found(_detail, said), None) if said else None,
        error_class=_or(None, lambda: classify(error, errors)),
        retry_after=max(_found(_retry_after, said), default=None) if said else None,
    )


def leaves(error: BaseException) -> list[BaseException]:
    """Return the exceptions that an exception group holds, at any depth; else the exception."""
    if not issubclass(type(error), BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for member in group.exceptions for leaf in leaves(member)]


def classify(error: BaseException, errors: Classes = MappingProxyType({})) -> ErrorClass | None:
    """Return the class that an exception has by itself; None leaves it to the queue's rules.

    Of an exception group the strictest of its members counts: PERMANENT, AMBIGUOUS, one without a
    class of its own, TRANSIENT.

    :param errors: a handler's own mapping. It goes before the meaning of builtin exceptions, and
        not before `Transient` and its like, unless it names a class derived from them.
    """
    # Asked of the type: an exception may lie about its __class__.
    kind = type(error)
    by_handler = _nearest(kind, errors, _SAID)
    if by_handler is None and issubclass(kind, BaseExceptionGroup):
        # What one of them makes sure of, the others cannot undo.
        return min((classify(leaf, errors) for leaf in leaves(error)), key=_STRICTEST.index)
    if by_handler or not issubclass(kind, URLError):
        return by_handler or _nearest(kind, _CLASSES)
    reason: object = getattr(error, "reason", None)
    return classify(reason, errors) if isinstance(reason, BaseException) else None


def _nearest(kind: type[BaseException], *mappings: Classes) -> ErrorClass | None:
    for base in kind.__mro__:
        for classes in mappings:
            if base in classes:
                return classes[base]
    return None


def _or(otherwise: T, read: Callable[[], T]) -> T:
    # An exception's own code runs here, and may raise anything.
    try:
        return read()
    except BaseException:
        return otherwise


def _type_name(kind: type) -> str:
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return storable.text(name, _TYPE_BYTES)


def _found(read: Callable[[HandlerError], T | None], said: Sequence[HandlerError]) -> Iterator[T]:
    for error in said:
        found = _or(None, partial(read, error))
        if found is not None:
            yield found


def _detail(said: HandlerError) -> Json:
    return storable.document(said.detail)


def _retry_after(said: HandlerError) -> float | None:
    return _seconds(said.retry_after)


def _seconds(retry_after: object) -> float | None:
    seconds = retry_after.total_seconds() if isinstance(retry_after, timedelta) else retry_after
    # Not math.isnan: an integer may be too large for a float.
    if not isinstance(seconds, int | float) or seconds != seconds:
        return None
    return float(min(max(seconds, 0), _LONGEST_WAIT_SECONDS))
