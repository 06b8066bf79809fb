"""A database for each installation: owned by a plain role, and as bare as one can be."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tools.template import OWNER, acting_as_owner, drop


@pytest.fixture
def new_database(server: psycopg.Connection[Any], server_dsn: str) -> Iterator[Callable[[], str]]:
    """Create databases without a schema, not even `public`; each answers with its owner's DSN."""
    names: list[str] = []

    def create() -> str:
        names.append(f"rdq_test_{uuid4().hex}")
        statement = sql.SQL("create database {} owner {} template template0")
        server.execute(statement.format(sql.Identifier(names[-1]), sql.Identifier(OWNER)))
        dsn = make_conninfo(server_dsn, dbname=names[-1])
        with psycopg.connect(dsn, autocommit=True) as database:
            database.execute("drop schema public")
        return acting_as_owner(dsn)

    yield create
    for name in names:
        drop(server, name)


@pytest.fixture
def bare(new_database: Callable[[], str]) -> str:
    """The owner's DSN of one such database."""
    return new_database()
