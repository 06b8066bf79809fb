"""Runners for rdq, the durable retry engine that lives in PostgreSQL.

Register functions with `Handlers`, run them with ``rdq-runner run`` or a `Runner` of your own.
Execution is at least once: a handler must be idempotent.
"""

from rdq_runner.handlers import Handlers
from rdq_runner.outcomes import Ambiguous, Cancelled, MalformedPayload, Permanent, Transient
from rdq_runner.runner import Runner
from rdq_runner.task import Task

__all__ = [
    "Ambiguous",
    "Cancelled",
    "Handlers",
    "MalformedPayload",
    "Permanent",
    "Runner",
    "Task",
    "Transient",
]

# An attempt's error type is the name under which the exception is imported.
for _exception in (Ambiguous, Cancelled, MalformedPayload, Permanent, Transient):
    _exception.__module__ = __name__
