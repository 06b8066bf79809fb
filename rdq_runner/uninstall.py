"""Takes the schema out of a database, with everything in it."""

from contextlib import closing
from dataclasses import dataclass

import psycopg

from rdq_runner import conninfo, locks
from rdq_runner.migrate import BOOKKEEPING

LOCK_SECONDS = 5.0


@dataclass(frozen=True)
class Holdings:
    """What a database would lose: tasks by status, and how many roles have been granted access."""

    tasks: dict[str, int]
    roles: int

    def __str__(self) -> str:
        tasks = ", ".join(f"{count} {status}" for status, count in self.tasks.items()) or "no tasks"
        return f"{tasks}; the access of {self.roles} roles, all queues and the audit"


def holdings(dsn: str) -> Holdings | None:
    """Look at what a database has; None if the schema is not installed there.

    :raises psycopg.Error: the database cannot be reached, or refuses it.
    """
    with closing(conninfo.connect(dsn)) as connection:
        row = connection.execute(
            "select to_regnamespace('rdq') is not null or to_regnamespace(%s) is not null,"
            " to_regclass('rdq.task') is not null",
            [BOOKKEEPING],
        ).fetchone()
        assert row
        if not row[0]:
            return None
        if not row[1]:
            return Holdings({}, 0)
        counts = connection.execute(
            """
            select 'PENDING', count(*) from rdq.due
            union all select 'IN_FLIGHT', count(*) from rdq.lease
            union all select 'DEAD', count(*) from rdq.dead
            union all
            select 'SUCCEEDED', (select count(*) from rdq.task) - (select count(*) from rdq.due)
              - (select count(*) from rdq.lease) - (select count(*) from rdq.dead)
            """
        ).fetchall()
        [(roles,)] = connection.execute("select count(distinct role) from rdq.access").fetchall()
        return Holdings({status: count for status, count in counts if count}, roles)


def uninstall(dsn: str) -> None:
    """Drop the schemas, in one transaction.

    What other schemas have made of them, such as a view or a default, is not dropped along.

    :raises psycopg.Error: the database cannot be reached, or refuses it: something of others
        depends on the schema, or is in the way.
    """
    with closing(conninfo.connect(dsn)) as connection:
        try:
            _drop(connection)
        except psycopg.errors.LockNotAvailable as error:
            raise psycopg.errors.LockNotAvailable(
                f"another session kept a lock on the schema for {LOCK_SECONDS:g} s:"
                f" {locks.schema_holders(connection, LOCK_SECONDS)}; nothing was deleted. Try again"
                " when it has ended, or end it with pg_terminate_backend"
            ) from error


def _drop(connection: psycopg.Connection) -> None:
    with connection.transaction():
        connection.execute(
            "select set_config('lock_timeout', %s, true)", [f"{LOCK_SECONDS * 1000:.0f}ms"]
        )
        _refuse_dependents(connection)
        connection.execute("drop schema if exists rdq cascade")
        connection.execute(f"drop schema if exists {BOOKKEEPING} cascade".encode())


def _refuse_dependents(connection: psycopg.Connection) -> None:
    # "drop schema … cascade" would take along what others have built on it.
    [(names,)] = connection.execute(
        """
        with ours as (
          select 'pg_class'::regclass as classid, c.oid
          from pg_class c where c.relnamespace = to_regnamespace('rdq')
          union all
          select 'pg_proc'::regclass, p.oid
          from pg_proc p where p.pronamespace = to_regnamespace('rdq')
          union all
          select 'pg_type'::regclass, t.oid
          from pg_type t where t.typnamespace = to_regnamespace('rdq')
        )
        select string_agg(distinct pg_describe_object(d.classid, d.objid, d.objsubid), ', ')
        from ours o
        join pg_depend d on d.refclassid = o.classid and d.refobjid = o.oid and d.deptype = 'n'
        where (d.classid, d.objid) not in (select o.classid, o.oid from ours o)
          -- A rule, default, constraint, trigger or policy belongs to a table, view or domain.
          and not exists (
            select from pg_depend p
            join ours o on o.classid = p.refclassid and o.oid = p.refobjid
            where p.classid = d.classid and p.objid = d.objid and p.deptype in ('a', 'i')
          )
        """
    ).fetchall()
    if names:
        raise psycopg.errors.DependentObjectsStillExist(
            f"these depend on the schema rdq: {names}; drop or change them first"
        )
