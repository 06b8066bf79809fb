"""One attempt: a handler is called, and whatever it does has an outcome."""

import inspect
from collections.abc import Mapping

from rdq_runner.handlers import Registration
from rdq_runner.outcomes import (
    Cancelled,
    ErrorClass,
    Failure,
    Outcome,
    Release,
    Success,
    describe,
    leaves,
)
from rdq_runner.shortages import RETRY_SECONDS, shortage
from rdq_runner.task import Task

Errors = Mapping[type[BaseException], ErrorClass]


class TimedOut(Exception):
    """The type of a failure that the runner recorded: a handler ran longer than it may.

    It is never raised: a handler's own `TimeoutError` is another thing, and an ordinary failure.
    """


class ChildDied(Exception):
    """The type of a failure: the process in which the handler ran ended, by itself or a signal."""


class VersionMismatch(Exception):
    """The type of a failure: a task is for another version of the handler than this runner has."""


def attempt(handler: Registration, task: Task) -> Outcome:
    """Run a handler once; whatever it raises is a failure, SystemExit and its like too."""
    try:
        check_answer(handler.function(task))
    except BaseException as error:
        return outcome_of(error, handler, task)
    return Success()


def check_answer(answer: object) -> None:
    """Refuse what a plain function returned, if it has yet to be run.

    :raises TypeError: it is a coroutine or a generator.
    """
    if inspect.isawaitable(answer) or inspect.isgenerator(answer):
        raise TypeError(f"the handler returned a {type(answer).__name__}, which nobody runs")


def outcome_of(error: BaseException, handler: Registration, task: Task) -> Outcome:
    """Return the outcome of an attempt in which the handler raised."""
    if task.cancelled and all(issubclass(type(leaf), Cancelled) for leaf in leaves(error)):
        return Release("the handler stopped because it was cancelled")
    if short := shortage(error):
        return Release(short, RETRY_SECONDS, warning=True)
    return describe(error, handler.errors)


def timed_out(seconds: float) -> Failure:
    """Return the failure of a handler that ran longer than it may: what it did is not known."""
    message = f"the handler ran longer than its timeout of {seconds:g} s"
    return Failure("rdq_runner.TimedOut", message, error_class="AMBIGUOUS")


def version_mismatch(handler: Registration, task: Task) -> Failure | None:
    """Return the failure of a task that is for another version of the handler, None if it is not.

    A task or a handler without a version fits any.
    """
    versions = (task.handler_version, handler.version)
    if None in versions or versions[0] == versions[1]:
        return None
    return Failure(
        "rdq_runner.VersionMismatch",
        f"the task is for version {task.handler_version!r} of the handler, this runner has"
        f" {handler.version!r}",
        detail={"task": task.handler_version, "handler": handler.version},
        error_class="PERMANENT",
    )
