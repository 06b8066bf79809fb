"""Locks that other sessions hold: waits that end, and say whose the lock is.

Anybody who may connect can take an advisory lock, and keep it; so can a transaction that its owner
has forgotten with any other lock.
"""

import time
from typing import Any, Final

import psycopg
from psycopg import sql

from rdq_runner.visible import visible

_PAUSE_SECONDS: Final = 0.05

_KEY: Final = sql.SQL("hashtextextended({}, 0)")
_IN_SESSION: Final = sql.SQL("select pg_try_advisory_lock({})")
_IN_TRANSACTION: Final = sql.SQL("select pg_try_advisory_xact_lock({})")

_HOLDERS: Final = sql.SQL("""
select distinct l.pid, a.usename, a.application_name
from pg_locks l
left join pg_stat_activity a on a.pid = l.pid
where l.granted and l.pid <> pg_backend_pid() and {}
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
order by l.pid
limit 5
""")
_OF_TURN: Final = sql.SQL(
    "l.locktype = 'advisory' and l.objsubid = 1"
    " and (l.classid::bigint << 32) | l.objid::bigint = {}"
)
# Of a session of another role nothing but its process and its name can be seen.
_OF_SCHEMA: Final = sql.SQL(
    "l.relation in (select c.oid from pg_class c where c.relnamespace = to_regnamespace('rdq'))"
    " and coalesce(a.xact_start < clock_timestamp() - {} * interval '1 second', true)"
)


def take_turn(
    connection: psycopg.Connection[Any], name: str, seconds: float, *, in_transaction: bool = False
) -> None:
    """Wait until no other session holds this turn, and hold it.

    :param seconds: how long to wait.
    :param in_transaction: whether the turn ends with the transaction; else with the connection.
    :raises psycopg.errors.LockNotAvailable: another one kept it; the message says which.
    """
    key = _KEY.format(name)
    attempt = (_IN_TRANSACTION if in_transaction else _IN_SESSION).format(key)
    deadline = time.monotonic() + seconds
    while not connection.execute(attempt).fetchall()[0][0]:
        if time.monotonic() > deadline:
            raise psycopg.errors.LockNotAvailable(_sessions(connection, _OF_TURN.format(key)))
        time.sleep(_PAUSE_SECONDS)


def schema_holders(connection: psycopg.Connection[Any], seconds: float) -> str:
    """Say which sessions have kept a lock on a table or view of the schema for so long."""
    return _sessions(connection, _OF_SCHEMA.format(seconds))


def _sessions(connection: psycopg.Connection[Any], condition: sql.Composed) -> str:
    found = [
        f"process {pid} of role {visible(role or 'unknown')}"
        + (f" ({visible(application)})" if application else "")
        for pid, role, application in connection.execute(_HOLDERS.format(condition)).fetchall()
    ]
    return ", ".join(found) or "a session that has ended meanwhile"
