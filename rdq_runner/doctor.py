"""The command ``rdq-runner doctor``: what rdq.doctor() finds, and what only a client can see."""

import json
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from typing import Final

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict

from rdq_runner.claims import SchemaError, check_schema
from rdq_runner.commands.exits import Exit
from rdq_runner.configuration import Configuration
from rdq_runner.listener import hears
from rdq_runner.options import connection_options
from rdq_runner.rows import Finding
from rdq_runner.sessions import Database
from rdq_runner.silence import PATIENCE_SECONDS, Connection
from rdq_runner.sql import Functions
from rdq_runner.visible import visible

CLOCK_SECONDS: Final = 1.0
"""How far the host's clock may be from the database's; the round trip's half is allowed for."""
ROUND_TRIP_SECONDS: Final = 0.02
ROUND_TRIPS: Final = 5
# A deep check reads every task.
DEEP_PATIENCE_SECONDS: Final = 3600.0

_COLOURS: Final = {"error": "red", "warning": "yellow", "info": "cyan"}


class Unreachable(Exception):
    """The database cannot be asked; `finding` says why, and what to do."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.finding)
        self.finding = finding


@click.command("doctor")
@connection_options
@click.option("--deep", is_flag=True, help="Read every task too; that can take minutes.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of findings in JSON.")
@click.option("--show-sql", is_flag=True, help="Print the SQL that runs, to stderr.")
def doctor(
    config: Configuration | None, dsn: str, deep: bool, as_json: bool, show_sql: bool
) -> None:
    """Say what is wrong here, and what to do about it.

    The exit status is 0 if nothing is, 8 if there are warnings or errors, and 1 if the database
    cannot be reached.
    """
    if show_sql:
        click.echo(f"select * from rdq.doctor(deep => {str(deep).lower()});", err=True)
    try:
        findings = examine(dsn, deep=deep)
        status = Exit.FOUND if any(f.severity != "info" for f in findings) else Exit.DONE
    except Unreachable as error:
        findings, status = [error.finding], Exit.ERROR
    if as_json:
        click.echo(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        for line in _lines(findings):
            click.echo(line)
    raise SystemExit(status)


def examine(
    dsn: str, *, deep: bool = False, clock: Callable[[], float] = time.time
) -> list[Finding]:
    """Look at everything, and return what was found, the worst first.

    :param clock: of this host, in seconds since 1970.
    :raises Unreachable: the database cannot be reached, or went away.
    """
    try:
        database = Database(dsn, "rdq-runner doctor")
    except psycopg.ProgrammingError as error:
        advice = "export RDQ_DSN=postgresql://user:password@host/database"
        raise Unreachable(Finding("error", "connection", str(error), advice)) from error
    try:
        with closing(
            database.connect(DEEP_PATIENCE_SECONDS if deep else PATIENCE_SECONDS)
        ) as open_:
            findings = [
                *_of_schema(Functions(open_), open_.info.user, deep),
                *_of_client(open_, database, clock),
            ]
    except psycopg.OperationalError as error:
        raise Unreachable(_unreachable(dsn, error)) from error
    finally:
        database.close()
    return sorted(findings, key=lambda f: list(_COLOURS).index(f.severity))


def _of_schema(rdq: Functions, role: str, deep: bool) -> Iterator[Finding]:
    """Yield what rdq.doctor() finds, or why it cannot be asked."""
    try:
        check_schema(rdq)
        yield from rdq.doctor(deep)
    except SchemaError as error:
        yield Finding("error", "schema", str(error), "rdq-runner migrate")
    except psycopg.errors.UndefinedFunction:
        yield Finding(
            "error",
            "schema",
            "it is older than this package: there is no such rdq.doctor",
            "rdq-runner migrate",
        )
    except psycopg.errors.InsufficientPrivilege as error:
        yield Finding(
            "error",
            "access",
            f"this role may not look at rdq: {_one_line(error)}",
            f"select rdq.grant_access({_literal(role)}, 'viewer');  -- by the owner or an admin",
        )
    except psycopg.Error as error:
        if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
            raise
        yield Finding(
            "error",
            "doctor",
            f"rdq.doctor() did not come to its end: {_one_line(error)}",
            "set statement_timeout = 0; select * from rdq.doctor();",
        )


def _of_client(
    connection: Connection, database: Database, clock: Callable[[], float]
) -> Iterator[Finding]:
    """Yield what is between this host and the database."""
    rdq = Functions(connection)
    # The shortest says most: what makes one longer is not the way.
    trip = min(
        (there_and_back(rdq, clock) for _ in range(ROUND_TRIPS)), key=lambda trip: trip.seconds
    )
    yield from clock_findings(trip)
    yield from latency_findings(trip.seconds)
    yield from encryption_findings(connection.info.hostaddr, connection.pgconn.ssl_in_use)
    try:
        deaf = not hears(rdq, database)
    except psycopg.errors.ReadOnlySqlTransaction:  # a standby behind a pooler
        return
    if deaf:
        yield Finding(
            "info",
            "connection",
            "it goes through a pooler that lends a server for one transaction: a runner hears no"
            " notices there, and finds new work by polling alone",
            "rdq-runner run --poll-interval 1  # or connect runners directly, or pool sessions",
        )


@dataclass(frozen=True)
class Trip:
    """A question to the database and back.

    :param seconds: that it took.
    :param ahead: seconds by which the host's clock is before the database's: give or take half of
        what the trip took.
    """

    seconds: float
    ahead: float


def there_and_back(rdq: Functions, clock: Callable[[], float]) -> Trip:
    """Ask the database for the time."""
    asked_at, began = clock(), time.perf_counter()
    database = rdq.clock()
    seconds = time.perf_counter() - began
    return Trip(seconds, asked_at + seconds / 2 - database)


def clock_findings(trip: Trip) -> Iterator[Finding]:
    """Yield whether the clocks differ for certain by more than `CLOCK_SECONDS`."""
    margin = trip.seconds / 2
    if abs(trip.ahead) - margin <= CLOCK_SECONDS:
        return
    direction = "ahead of" if trip.ahead > 0 else "behind"
    yield Finding(
        "warning",
        "clock",
        f"this host's is {abs(trip.ahead):.1f} s {direction} the database's (give or take"
        f" {margin * 1000:.0f} ms; {CLOCK_SECONDS:g} s is the bound): rdq goes by the database's,"
        " but logs and the timestamps of signed callbacks are this host's",
        "chronyc makestep  # and see that both hosts keep their time by NTP",
    )


def latency_findings(seconds: float) -> Iterator[Finding]:
    """Yield whether a round trip takes longer than `ROUND_TRIP_SECONDS`."""
    if seconds > ROUND_TRIP_SECONDS:
        yield Finding(
            "info",
            "connection",
            f"a round trip takes {seconds * 1000:.0f} ms: each claim and each report waits for one",
            "rdq-runner run --concurrency 32  # more slots a runner, or run it near the database",
        )


def encryption_findings(hostaddr: str, encrypted: bool) -> Iterator[Finding]:
    """Yield whether payloads go through a network in clear.

    :param hostaddr: the server's address; empty for a unix socket.
    """
    if not hostaddr or encrypted or ip_address(hostaddr.partition("%")[0]).is_loopback:
        return
    yield Finding(
        "info",
        "connection",
        f"it goes to {hostaddr} without TLS: payloads can be read on the way",
        "export PGSSLMODE=verify-full  # or sslmode= in the connection string",
    )


def _unreachable(dsn: str, error: psycopg.Error) -> Finding:
    parameters = conninfo_to_dict(dsn)
    where = [
        f"{flag} {shlex.quote(str(value))}"
        for flag, name, variable in (("-h", "host", "PGHOST"), ("-p", "port", "PGPORT"))
        if (value := parameters.get(name) or os.environ.get(variable))
    ]
    return Finding(
        "error",
        "connection",
        f"the database cannot be reached: {_one_line(error)}",
        " ".join(
            ["pg_isready", *where, " # is it there? If so: --dsn, RDQ_DSN, PGUSER, PGPASSWORD"]
        ),
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    for found in findings:
        severity = click.style(f"{found.severity:8}", fg=_COLOURS[found.severity], bold=True)
        yield f"{severity} {visible(found.subject)}: {visible(found.finding)}"
        yield f"{'':8} {click.style(visible(found.advice), dim=True)}"
    counts = Counter(found.severity for found in findings)
    summary = ", ".join(
        f"{counts[severity]} {severity}{'s' * (counts[severity] > 1)}"
        for severity in _COLOURS
        if counts[severity]
    )
    yield summary or "nothing is wrong"
