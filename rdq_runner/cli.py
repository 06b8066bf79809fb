"""The command ``rdq-runner``."""

import atexit
import gc
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import click
import psycopg

from rdq_runner import changes, conninfo, logs, signals
from rdq_runner.claims import SchemaError, check_schema
from rdq_runner.commands import COMMANDS
from rdq_runner.commands.command import ask
from rdq_runner.commands.exits import Exit
from rdq_runner.configuration import Configuration, ConfigurationError
from rdq_runner.doctor import doctor
from rdq_runner.handlers import Handlers, HandlersError, load
from rdq_runner.migrate import MigrationError, migrate
from rdq_runner.options import connection_options, option, queue_and_bound, warn_of_slips
from rdq_runner.overdue import TooManyOverdue
from rdq_runner.runner import Runner
from rdq_runner.sql import Functions
from rdq_runner.uninstall import holdings, uninstall

# So many new objects make the garbage collector look. A batch of attempts is some thousand, and
# all of them go without it; by default it looks for each 700.
COLLECTOR_THRESHOLD: Final = 5_000

# What is registered to be called at exit has so long.
FAREWELL_SECONDS: Final = 5.0


@click.group()
@click.version_option(package_name="rdq-runner")
def main() -> None:
    """Run rdq: retries and dead letters in PostgreSQL."""
    warn_of_slips([*_leaves(main)])


def _leaves(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from _leaves(command)
        else:
            yield command


for command in COMMANDS:
    main.add_command(command)


main.add_command(doctor)


@main.command("uninstall")
@connection_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def _uninstall(config: Configuration | None, dsn: str, yes: bool) -> None:
    """Take the schema rdq out of the database, with all tasks, histories and the audit.

    It shows what would be lost, and asks. If something else depends on the schema, such as a view
    of your own, nothing is deleted.
    """
    try:
        found = holdings(dsn)
        if found is None:
            click.echo("the schema rdq is not installed here")
            return
        click.echo(f"this deletes {found}")
        if not ask("Delete all of it?", yes=yes):
            sys.exit(Exit.REFUSED)
        uninstall(dsn)
    except psycopg.Error as error:
        raise click.ClickException(str(error)) from error
    click.echo("the schemas rdq and rdq_migrations are gone")


@main.command("migrate")
@connection_options
@click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds to wait for another session's lock.",
)
@click.option("--reload", is_flag=True, help="Load the functions also where they are up to date.")
def _migrate(config: Configuration | None, dsn: str, lock_timeout: float, reload: bool) -> None:
    """Install the schema rdq, or bring it up to date.

    Not through a pooler that lends a server for one transaction: a lock is the session's.
    """
    try:
        result = migrate(dsn, lock_timeout_seconds=lock_timeout, report=click.echo, reload=reload)
    except (MigrationError, psycopg.Error) as error:
        raise click.ClickException(str(error)) from error
    click.echo(result)


@main.command("apply")
@connection_options
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
def _apply(config: Configuration | None, dsn: str, dry_run: bool) -> None:
    """Make the queues and endpoints those of the file.

    What it changes is shown first. With --dry-run the exit status is 0 if there is nothing to
    change, and 3 if there is.
    """
    if config is None:
        raise click.UsageError("give the file: --config rdq.toml")
    try:
        with conninfo.connect(dsn) as connection:
            check_schema(Functions(connection))
            found = changes.apply(connection, config, dry_run=dry_run, show=click.echo)
    except (ConfigurationError, SchemaError, psycopg.Error) as error:
        raise click.ClickException(str(error)) from error
    if not found.made:
        click.echo("nothing to change")
    elif dry_run:
        click.echo(f"{len(found.made)} would be changed; nothing was")
        raise SystemExit(Exit.WOULD_CHANGE)
    else:
        click.echo(f"{len(found.made)} changed")


@main.command("run")
@connection_options
@option(
    "--queue",
    "RDQ_QUEUES",
    param="queues",
    type=queue_and_bound,
    metavar="QUEUE[=N]",
    multiple=True,
    required=True,
    help="Queue to work on, and how many of its tasks may run at once; repeatable.",
)
@option(
    "--handlers",
    "RDQ_HANDLERS",
    help="Module of the handlers: package.module[:attribute].  [default: none, only endpoints]",
)
@option(
    "--concurrency",
    "RDQ_CONCURRENCY",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Handlers that run at once, of all queues.",
)
@option("--name", "RDQ_NAME", help="Of this runner in the history.  [default: host and process id]")
@option("--code-version", "RDQ_CODE_VERSION", help="Kept with each attempt.")
@option(
    "--lease",
    "RDQ_LEASE",
    type=click.FloatRange(min=0.1, max=2_592_000),
    help="Seconds until a silent runner's tasks are taken from it.  [default: the queue's]",
)
@option(
    "--poll-interval",
    "RDQ_POLL_INTERVAL",
    type=click.FloatRange(min=0.05, max=3600),
    default=5.0,
    show_default=True,
    help="Seconds after which to look for work that nothing announced.",
)
@option(
    "--grace",
    "RDQ_GRACE",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that handlers have to end at shutdown.",
)
@option(
    "--max-unreported",
    "RDQ_MAX_UNREPORTED",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Claim no more with so many outcomes that the database does not have yet.",
)
@option(
    "--allow-destination",
    "RDQ_ALLOW_DESTINATIONS",
    param="allow_destinations",
    multiple=True,
    help="Network, address or host that endpoints may be at, besides the public internet.",
)
@option(
    "--metrics-port",
    "RDQ_METRICS_PORT",
    type=click.IntRange(0, 65535),
    help="Serve /metrics, /healthz and /readyz there; 0 takes a free port.  [default: nowhere]",
)
@option(
    "--metrics-address",
    "RDQ_METRICS_ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address to serve them on.",
)
@option(
    "--log-format",
    "RDQ_LOG_FORMAT",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
)
@option(
    "--log-level",
    "RDQ_LOG_LEVEL",
    type=click.Choice(["info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Leave out what matters less; the begin and the end of each attempt are info.",
)
def _run(
    config: Configuration | None,
    dsn: str,
    queues: tuple[tuple[str, int | None], ...],
    handlers: str | None,
    concurrency: int,
    name: str | None,
    code_version: str | None,
    lease: float | None,
    poll_interval: float,
    grace: float,
    max_unreported: int,
    allow_destinations: tuple[str, ...],
    metrics_port: int | None,
    metrics_address: str,
    log_format: logs.LogFormat,
    log_level: logs.LogLevel,
) -> None:
    """Run the tasks of some queues.

    SIGTERM, SIGINT or SIGHUP: claim no more, let handlers end, report, hand the rest back. A second
    one: do not wait for handlers.
    """
    # First of all, since a process with the id 1, as in a container, does not even hear of a signal
    # that it has not taken. Until the runner takes them over, nothing has begun.
    with signals.taken(signals.to_stop(), lambda: sys.exit(0)):
        logs.configure(log_format, log_level)
        # Before the handlers are loaded, which may know better. This, and not to look again and
        # again at what is loaded, saves a tenth of a runner's processor time.
        gc.set_threshold(COLLECTOR_THRESHOLD)
        # Like ``python -m``: the handlers of a project are found from its folder.
        with suppress(FileNotFoundError):  # it was deleted
            sys.path.insert(0, str(Path.cwd()))
        try:
            registered = load(handlers) if handlers else Handlers()
        except HandlersError as error:
            raise click.ClickException(str(error)) from error
        try:
            runner = Runner(
                dsn,
                queues=dict(queues),
                handlers=registered,
                concurrency=concurrency,
                name=name,
                code_version=code_version,
                lease=lease,
                poll_interval=poll_interval,
                grace=grace,
                max_unreported=max_unreported,
                allow_destinations=allow_destinations,
                metrics_port=metrics_port,
                metrics_address=metrics_address,
            )
        except (HandlersError, ValueError, psycopg.Error) as error:
            raise click.ClickException(str(error)) from error
        code = 0
        try:
            gc.freeze()
            runner.run()
        except (SchemaError, TooManyOverdue, psycopg.Error, OSError) as error:
            refusal = click.ClickException(str(error))
            refusal.show()
            code = refusal.exit_code
        _end(code)


def _end(code: int) -> NoReturn:
    """End the process, whatever still runs in it.

    A thread that a handler has left behind, or one of `asyncio.to_thread` whose attempt is over,
    would otherwise hold up the interpreter's own end, and go on with its effects meanwhile.
    """
    # What others have registered, such as an error tracker that sends what it has gathered.
    farewell = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
    farewell.start()
    farewell.join(FAREWELL_SECONDS)
    logging.shutdown()
    logs.flush()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
