"""Fixtures for all tests: a server for the run, and a database for each test that asks for one."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tools.template import clone, drop, ensure_template
from tools.testbed import obtain

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]


def pytest_configure(config: pytest.Config) -> None:
    """Find a server, before there are xdist's workers: they inherit its DSN."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell has it for what runs in the background; what we start would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "RDQ_TEST_DSN" not in os.environ and not config.option.collectonly:
        stack = ExitStack()
        testbed = stack.enter_context(obtain())
        config.add_cleanup(stack.close)
        print(f"PostgreSQL: {testbed.name}")
        os.environ["RDQ_TEST_DSN"] = testbed.dsn


@pytest.fixture(scope="session")
def server_dsn() -> str:
    """A superuser's DSN of the server that has the template."""
    dsn = os.environ["RDQ_TEST_DSN"]
    ensure_template(dsn)
    return dsn


@pytest.fixture(scope="session")
def server(server_dsn: str) -> Iterator[Connection]:
    """A superuser's session outside of the databases of the tests."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def database(server: Connection, server_dsn: str) -> Iterator[str]:
    """A superuser's DSN of a database of the test's own, with the schema installed."""
    name = f"rdq_test_{uuid4().hex}"
    clone(server, name)
    yield make_conninfo(server_dsn, dbname=name)
    drop(server, name)


@pytest.fixture
def connect(database: str) -> Iterator[Connect]:
    """Open further sessions in the test's database: ``connect(autocommit=False)``."""
    with ExitStack() as stack:

        def open_session(autocommit: bool = True, **options: Any) -> Connection:
            return stack.enter_context(psycopg.connect(database, autocommit=autocommit, **options))

        yield open_session


@pytest.fixture
def db(connect: Connect) -> Connection:
    """A session in the test's database, in autocommit."""
    return connect()
