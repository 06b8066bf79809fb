"""Flag, variable, file, default: in this order; and what is misspelt does not pass in silence."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import psycopg
import pytest
from click.testing import CliRunner

from rdq_runner import cli
from tests.configuration.command import ROOT, rdq_runner
from tests.waiting import LONGEST_SECONDS, wait_until

SECRET = "hunter2-s3cr3t"


class Started(Exception):
    """Raised instead of running."""


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch, file: Path) -> Any:
    """Return what the runner is made with, for some flags, variables and a file."""
    given: dict[str, Any] = {}

    class Recorder:
        def __init__(self, dsn: str, **arguments: Any) -> None:
            given.update(arguments, dsn=dsn)
            raise Started

    monkeypatch.setattr(cli, "Runner", Recorder)

    def run(*flags: str, text: str | None = None, **variables: str) -> dict[str, Any]:
        if text is not None:
            file.write_text(text, encoding="utf-8")
            flags = ("--config", str(file), *flags)
        for name in [name for name in os.environ if name.startswith("RDQ_")]:
            monkeypatch.delenv(name)
        result = CliRunner().invoke(cli.main, ["run", *flags], env=variables)
        if not isinstance(result.exception, Started):
            raise AssertionError(result.output)
        return given

    return run


FILE = """
dsn = "service=rdq"

[runner]
queues = ["mails", "payments=4"]
handlers = "tests.runner.behaviours"
concurrency = 16
code_version = "from-file"
lease = 30
poll_interval = 0.5
allow_destinations = ["10.0.0.0/8", "app.internal"]
metrics_port = 9000
log_format = "text"
"""


def test_the_file_gives_the_runners_options(options: Any) -> None:
    given = options(text=FILE)
    assert given["dsn"] == "service=rdq"
    assert given["queues"] == {"mails": None, "payments": 4}
    assert "hold" in given["handlers"]
    assert (given["concurrency"], given["code_version"]) == (16, "from-file")
    assert (given["lease"], given["poll_interval"], given["grace"]) == (30.0, 0.5, 30.0)
    assert given["allow_destinations"] == ("10.0.0.0/8", "app.internal")
    assert given["metrics_port"] == 9000


def test_a_variable_goes_before_the_file_and_a_flag_before_both(options: Any) -> None:
    variables = {
        "RDQ_CONCURRENCY": "2",
        "RDQ_CODE_VERSION": "from-variable",
        "RDQ_QUEUES": "a=1 b",
        "RDQ_DSN": "service=other",
    }
    given = options("--concurrency", "3", text=FILE, **variables)
    assert (given["concurrency"], given["code_version"]) == (3, "from-variable")
    assert given["queues"] == {"a": 1, "b": None}
    assert given["dsn"] == "service=other"
    given = options("--queue", "c=7", text=FILE, **variables)
    assert given["queues"] == {"c": 7}


def test_queues_may_be_a_table(options: Any) -> None:
    given = options(text="[runner.queues]\npayments = 4\n'mails.eu' = 2\n")
    assert given["queues"] == {"payments": 4, "mails.eu": 2}


def test_a_variable_may_name_the_file(options: Any, file: Path) -> None:
    file.write_text(FILE)
    assert options(RDQ_CONFIG=str(file))["concurrency"] == 16


def test_flags_alone_are_enough(options: Any) -> None:
    given = options("--queue", "payments=4", "--queue", "mails")
    assert given["queues"] == {"payments": 4, "mails": None}
    assert len(given["handlers"]) == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[runer]", "runer: there is no such key: did you mean runner?"),
        ("queue = 1", "queue: there is no such key: did you mean queues?"),
        ("[runner]\nconcurency = 1", "runner.concurency: there is no such key: did you mean conc"),
        (
            "[runner]\npoll-interval = 1",
            "runner.poll-interval: there is no such key: did you mean poll_interval?",
        ),
        ("[runner]\ndsn = 'service=x'", "runner.dsn: there is no such key"),
        ("[runner]\nconcurrency = 0", "runner.concurrency: 0 is not in the range x>=1"),
        ("[runner]\nconcurrency = 1.5", "runner.concurrency: '1.5' is not a valid integer"),
        ("[runner]\nconcurrency = true", "runner.concurrency: 'true' is not a valid integer"),
        ("[runner]\nconcurrency = [1]", "runner.concurrency: give one value"),
        ("[runner]\nqueues = 'payments'", "runner.queues: give a list"),
        ("[runner]\nqueues = ['payments=0']", "runner.queues: 'payments=0': give at least 1"),
        ("[runner.queues]\npayments = 'x'", "runner.queues: 'payments=x': give at least 1"),
        ("[runner]\nlog_format = 'xml'", "runner.log_format: 'xml' is not one of"),
        ("runner = 1", "runner: is a int: give a table"),
        ("queues = 1", "queues: is a int: give a table"),
        ("[queues]\npayments = 1", "queues.payments: is a int: give a table"),
        ("[endpoints.payments]\nurl = 'x'", "endpoints.payments.url: is a str: give a table"),
        ("[queues.p]\nlease = nan", "queues.p.lease: dates, times and what is no finite number"),
        ("[queues.p]\nlease = 10:00:00", "queues.p.lease: dates, times"),
        ("[queues.p]\nerror_rules = [{a = inf}]", "queues.p.error_rules: dates, times"),
        ("dsn = 1", "dsn: give a connection string"),
        ("[queues", "is not TOML: "),
        ("a = '\udc80'", "is not TOML: "),
    ],
)
def test_what_is_wrong_in_the_file_is_named_with_file_and_key(
    file: Path, text: str, complaint: str
) -> None:
    file.write_bytes(text.encode(errors="surrogateescape"))
    for command in ("run", "apply", "migrate"):
        done = rdq_runner(command, "--config", file)
        assert done.returncode == 1
        assert f"Error: {file}: {complaint}" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    done = rdq_runner("run", "--config", file)
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: {file}: cannot be read: No such file or directory\n",
    )


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/x",
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"host=127.0.0.1 port=1 sslpassword={SECRET}",
    ],
)
def test_a_password_is_refused_in_the_file_and_warned_of_in_a_flag(file: Path, dsn: str) -> None:
    file.write_text(f"dsn = {json.dumps(dsn)}\n")
    refused = rdq_runner("migrate", "--config", file)
    assert refused.returncode == 1
    assert "dsn: a password does not belong into this file" in refused.stderr
    warned = rdq_runner("migrate", "--dsn", dsn)
    assert warned.stderr.startswith("warning: --dsn has a password")
    silent = rdq_runner("migrate", RDQ_DSN=dsn)
    assert "warning" not in silent.stderr
    for done in (refused, warned, silent):
        assert done.returncode == 1
        assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "dsn", [f"host=x password='{SECRET}", f"postgresql://me:{SECRET}@[x/y", f"x={SECRET}", SECRET]
)
def test_a_connection_string_that_is_none_is_not_repeated(file: Path, dsn: str) -> None:
    file.write_text(f"dsn = {json.dumps(dsn)}\n")
    for done in (
        rdq_runner("migrate", "--config", file),
        rdq_runner("migrate", "--dsn", dsn),
        rdq_runner("run", "--queue", "q", RDQ_DSN=dsn),
    ):
        assert done.returncode in (1, 2)
        assert "is not a connection string" in done.stderr
        assert SECRET not in done.stdout + done.stderr


def test_a_variable_that_is_nearly_ours_is_warned_of(database: str) -> None:
    done = rdq_runner("migrate", RDQ_DSN=database, RDQ_CONCURENCY="4", RDQ_SOMETHING_ELSE="x")
    assert done.returncode == 0
    assert done.stderr == ("warning: RDQ_CONCURENCY does nothing: did you mean RDQ_CONCURRENCY?\n")


@pytest.mark.parametrize("queue", ["payments=0", "payments=", "payments=-1", "payments=x"])
def test_a_bound_that_is_none_is_refused(queue: str) -> None:
    done = rdq_runner("run", "--queue", queue)
    assert done.returncode == 2
    assert f"{queue!r}: give at least 1, as in payments=4" in done.stderr


def test_a_destination_that_is_none_is_refused_in_a_line(database: str) -> None:
    done = rdq_runner("run", "--queue", "q", "--allow-destination", "https://x", RDQ_DSN=database)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_every_option_of_run_has_a_variable_of_its_own() -> None:
    options = [option for option in cli.main.commands["run"].params if option.name != "help"]
    variables = [option.envvar for option in options]
    assert all(isinstance(name, str) and name.startswith("RDQ_") for name in variables)
    assert len(set(variables)) == len(variables)
    assert all(isinstance(option, click.Option) for option in options)


def test_a_runner_runs_with_a_file_alone(
    database: str, db: psycopg.Connection[Any], file: Path, tmp_path: Path
) -> None:
    db.execute("select rdq.create_queue('q')")
    file.write_text(
        """
        [runner]
        handlers = "tests.runner.behaviours"
        queues = { q = 2 }
        """
    )
    command = [sys.executable, "-m", "rdq_runner", "run", "--config", str(file)]
    log = (tmp_path / "log").open("w")
    with (
        log,
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "RDQ_DSN": database}, stdout=log, stderr=log
        ) as process,
    ):
        try:
            db.execute("select rdq.submit('q', 'ok', 'x')")
            wait_until(
                lambda: db.execute("select status from rdq.tasks").fetchall() == [("SUCCEEDED",)]
            )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LONGEST_SECONDS)
    assert process.returncode == 0
