"""The command ``rdq-runner``."""

import os
import sys
from pathlib import Path

import click
import psycopg

from rdq_runner import handlers, logs
from rdq_runner.claims import SchemaError
from rdq_runner.migrate import MigrationError, migrate
from rdq_runner.runner import Runner

_dsn = click.option(
    "--dsn",
    envvar="RDQ_DSN",
    default="",
    help="Connection string or URI (or RDQ_DSN); the rest comes from libpq's environment.",
)


@click.group()
@click.version_option(package_name="rdq-runner")
def main() -> None:
    """Run rdq: retries and dead letters in PostgreSQL."""


@main.command("migrate")
@_dsn
@click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds to wait for another session's lock.",
)
def _migrate(dsn: str, lock_timeout: float) -> None:
    """Install the schema rdq, or bring it up to date."""
    try:
        result = migrate(dsn, lock_timeout_seconds=lock_timeout, report=click.echo)
    except (MigrationError, psycopg.Error) as error:
        raise click.ClickException(str(error)) from error
    click.echo(result)


@main.command("run")
@_dsn
@click.option(
    "--queue", "queues", multiple=True, required=True, help="Queue to work on; repeatable."
)
@click.option(
    "--handlers",
    "source",
    required=True,
    help="Module of the handlers: package.module[:attribute].",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Handlers that run at once.",
)
@click.option("--name", help="Of this runner in the history.  [default: host and process id]")
@click.option(
    "--code-version",
    envvar="RDQ_CODE_VERSION",
    help="Kept with each attempt (or RDQ_CODE_VERSION).",
)
@click.option(
    "--lease",
    type=click.FloatRange(min=0.1, max=2_592_000),
    help="Seconds until a silent runner's tasks are taken from it.  [default: the queue's]",
)
@click.option(
    "--poll-interval",
    type=click.FloatRange(min=0.05, max=3600),
    default=5.0,
    show_default=True,
    help="Seconds after which to look for work that nothing announced.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Seconds that handlers have to end at shutdown.",
)
@click.option(
    "--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True
)
def _run(
    dsn: str,
    queues: tuple[str, ...],
    source: str,
    concurrency: int,
    name: str | None,
    code_version: str | None,
    lease: float | None,
    poll_interval: float,
    grace: float,
    log_format: logs.LogFormat,
) -> None:
    """Run the tasks of some queues.

    SIGTERM or SIGINT: claim no more, let handlers end, report, hand the rest back. A second one:
    do not wait for handlers.
    """
    logs.configure(log_format)
    # Like ``python -m``: the handlers of a project are found from its folder.
    sys.path.insert(0, str(Path.cwd()))
    try:
        runner = Runner(
            dsn,
            queues=queues,
            handlers=handlers.load(source),
            concurrency=concurrency,
            name=name,
            code_version=code_version,
            lease=lease,
            poll_interval=poll_interval,
            grace=grace,
        )
    except (handlers.HandlersError, psycopg.Error) as error:
        raise click.ClickException(str(error)) from error
    try:
        runner.run()
    except (SchemaError, psycopg.Error) as error:
        raise click.ClickException(str(error)) from error
    finally:
        if runner.interrupted:
            # A handler that still runs could hold up the interpreter's own end.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1 if runner.error else 0)
