"""Runners for rdq, the durable retry engine that lives in PostgreSQL.

Register functions with `Handlers`, run them with ``rdq-runner run`` or a `Runner` of your own.
Give them tasks with `submit`, or what failed elsewhere with `guard` and `guarded`.
Execution is at least once: a handler must be idempotent.
"""

from typing import TYPE_CHECKING

from rdq_runner.attempts import ChildDied, TimedOut, VersionMismatch
from rdq_runner.handlers import Handlers
from rdq_runner.handover import Handed, guard, guard_async, guarded, guarded_async
from rdq_runner.outcomes import Ambiguous, Cancelled, MalformedPayload, Permanent, Transient
from rdq_runner.producers import (
    NewCall,
    NewTask,
    submit,
    submit_async,
    submit_many,
    submit_many_async,
)
from rdq_runner.task import Task

if TYPE_CHECKING:
    from rdq_runner.runner import Runner

__all__ = [
    "Ambiguous",
    "Cancelled",
    "ChildDied",
    "Handed",
    "Handlers",
    "MalformedPayload",
    "NewCall",
    "NewTask",
    "Permanent",
    "Runner",
    "Task",
    "TimedOut",
    "Transient",
    "VersionMismatch",
    "guard",
    "guard_async",
    "guarded",
    "guarded_async",
    "submit",
    "submit_async",
    "submit_many",
    "submit_many_async",
]

# An attempt's error type is the name under which the exception is imported.
for _exception in (
    Ambiguous,
    Cancelled,
    ChildDied,
    MalformedPayload,
    Permanent,
    TimedOut,
    Transient,
    VersionMismatch,
):
    _exception.__module__ = __name__


def __getattr__(name: str) -> object:
    # Most of the package: a child process that only runs handlers imports none of that.
    if name == "Runner":
        from rdq_runner.runner import Runner

        return Runner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
