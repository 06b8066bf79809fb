"""Roles of one test, and clients that act as them as applications, poolers and gateways do."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
from psycopg import Rollback, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

Row = dict[str, Any]


class Roles:
    """Makes roles under names of its own, since other tests share the server; drops them again."""

    def __init__(self, dsn: str, stack: ExitStack) -> None:
        self._dsn = dsn
        self._stack = stack
        self._suffix = uuid4().hex[:12]
        self._names: list[str] = []
        self.owner = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        stack.callback(self._drop)

    def create(self, name: str, *, member_of: Sequence[str] = (), inherit: bool = True) -> str:
        """Create a role that can log in, and return its name."""
        role = f"rdq_test_{name}_{self._suffix}"
        how = sql.SQL("inherit" if inherit else "noinherit")
        self._execute("create role {} login {} password {}", role, how, sql.Literal(self._suffix))
        self._names.append(role)
        for group in member_of:
            self._execute("grant {} to {}", group, role)
        return role

    def grant(self, role: str, capability: str, *queues: str) -> str:
        """Grant a capability, and return the role."""
        self.owner.execute("select rdq.grant_access(%s, %s, %s)", [role, capability, list(queues)])
        return role

    def connect(self, role: str) -> psycopg.Connection[Row]:
        dsn = make_conninfo(self._dsn, user=role, password=self._suffix)
        return self._stack.enter_context(
            psycopg.connect(dsn, autocommit=True, row_factory=dict_row)
        )

    def _drop(self) -> None:
        for role in reversed(self._names):
            self._execute("drop owned by {}", role)
            self._execute("drop role {}", role)

    def _execute(self, statement: LiteralString, *parts: str | sql.Composable) -> None:
        names = [sql.Identifier(part) if isinstance(part, str) else part for part in parts]
        self.owner.execute(sql.SQL(statement).format(*names))


class Client:
    """Sends requests on a connection, each in a transaction, and as a role if one is named."""

    def __init__(
        self, connection: psycopg.Connection[Row], role: str | None = None, local: bool = False
    ) -> None:
        self.connection = connection
        self._role = role
        self._local = local

    def ask(self, query: str, values: Mapping[str, object], keep: bool = False) -> list[Row]:
        """Return the rows of a request, which is rolled back unless it is kept."""
        if self._role and not self._local:
            self._take("set role {}")
        try:
            with self.connection.transaction():
                if self._local:
                    self._take("set local role {}")
                rows = self.connection.execute(query.encode(), values).fetchall()
                if not keep:
                    raise Rollback
            return rows
        finally:
            if self._role and not self._local:
                self.connection.execute("reset role")

    def _take(self, statement: LiteralString) -> None:
        assert self._role
        self.connection.execute(sql.SQL(statement).format(sql.Identifier(self._role)))


def as_itself(roles: Roles) -> Client:
    role = roles.grant(roles.create("ops"), "operator", "payments.*")
    return Client(roles.connect(role))


def as_a_member(roles: Roles) -> Client:
    role = roles.grant(roles.create("ops"), "operator", "payments.*")
    return Client(roles.connect(roles.create("ada", member_of=[role])))


def as_a_member_with_rights_elsewhere(roles: Roles) -> Client:
    group = roles.grant(roles.create("ops"), "operator", "payments.e*")
    team = roles.create("team", member_of=[roles.grant(group, "viewer", "archive.*")])
    role = roles.create("ada", member_of=[roles.grant(team, "producer", "other")])
    return Client(roles.connect(roles.grant(role, "worker", "jobs.*")))


def by_set_role(roles: Roles) -> Client:
    connection, role = gateway(roles)
    return Client(connection, role)


def by_set_local_role(roles: Roles) -> Client:
    connection, role = gateway(roles)
    return Client(connection, role, local=True)


def by_an_option_of_the_connection(roles: Roles) -> Client:
    connection, role = gateway(roles)
    connection.execute("select set_config('role', %s, false)", [role])
    return Client(connection)


def gateway(roles: Roles) -> tuple[psycopg.Connection[Row], str]:
    """Connect as who has no right, and may take on both an operator and another one."""
    ours = roles.grant(roles.create("ops"), "operator", "payments.*")
    others = roles.grant(roles.create("other_ops"), "operator", "mails")
    return roles.connect(roles.create("gate", member_of=[ours, others], inherit=False)), ours


WAYS: Mapping[str, Callable[[Roles], Client]] = {
    way.__name__: way
    for way in (
        as_itself,
        as_a_member,
        as_a_member_with_rights_elsewhere,
        by_set_role,
        by_set_local_role,
        by_an_option_of_the_connection,
    )
}
"""The ways in which a client is an operator of ``payments.eu`` and nothing else that matters."""
