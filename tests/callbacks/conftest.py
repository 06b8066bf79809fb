"""A queue whose handlers are endpoints, runners, and receivers that behave as the test says."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from rdq_runner import Handlers, Runner
from tests.callbacks.receivers import Behaviour, Receiver
from tests.runner.conftest import Queue

# What the receivers of the reference library are given.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Callbacks(Queue):
    """The queue ``q`` of the test's database."""

    def set_endpoint(self, url: str, handler: str = "hook", **settings: Any) -> None:
        """Make a handler a callback."""
        self.db.execute(
            "select rdq.set_endpoint('q', %s, %s, timeout => %s, headers => %s, secret => %s,"
            " response_rules => %s)",
            [
                handler,
                url,
                settings.get("timeout", "10 seconds"),
                Jsonb(settings.get("headers", {})),
                settings.get("secret"),
                Jsonb(settings.get("rules", [])),
            ],
        )

    def send(self, payload: str | bytes = "{}", handler: str = "hook", **fields: object) -> UUID:
        """Submit a task with headers."""
        row = self.db.execute(
            "select rdq.submit('q', %s, %s, headers => %s)", [handler, payload, Jsonb(fields)]
        ).fetchone()
        assert row
        return UUID(str(row[0]))

    def last(self, task_id: UUID) -> Any:
        """Return the last attempt."""
        return self.history(task_id)[-1]

    def redrive_as_it_is(self, task_id: UUID) -> None:
        """Redrive a task."""
        self.db.execute("select rdq.redrive(%s)", [task_id])


class Start(Protocol):
    """Starts a runner within this process; it may connect to the loopback."""

    def __call__(self, **arguments: Any) -> Runner: ...


class Receive(Protocol):
    """Starts a receiver."""

    def __call__(self, behave: Behaviour, **arguments: Any) -> Receiver: ...


@pytest.fixture
def queue(db: psycopg.Connection[Any]) -> Callbacks:
    return Callbacks(db)


@pytest.fixture
def start(database: str, queue: Callbacks) -> Iterator[Start]:
    with ExitStack() as stack:

        def start_runner(**arguments: Any) -> Runner:
            defaults = {
                "dsn": database,
                "queues": ["q"],
                "handlers": Handlers(),
                "allow_destinations": ["127.0.0.0/8"],
            }
            runner = Runner(**{**defaults, **arguments})
            runner.start()
            stack.callback(runner.stop, grace=0)
            return runner

        yield start_runner


@pytest.fixture
def receive() -> Iterator[Receive]:
    with ExitStack() as stack:

        def start_receiver(behave: Behaviour, **arguments: Any) -> Receiver:
            return stack.enter_context(Receiver(behave, **arguments).running())

        yield start_receiver
