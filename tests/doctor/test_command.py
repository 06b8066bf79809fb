"""The command: what the database finds, what only a client can see, and how both are said."""

import json
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import make_conninfo

from rdq_runner import doctor
from rdq_runner.cli import main
from rdq_runner.doctor import (
    Trip,
    clock_findings,
    encryption_findings,
    examine,
    latency_findings,
)
from rdq_runner.rows import Finding
from tests.conftest import Connection
from tests.pooler.conftest import (  # noqa: F401
    PROGRAM,
    Pooler,
    StartPooler,
    pooler,
    start_pooler,
)
from tools.postgres import Server

Clock = Callable[[], float]


@pytest.fixture(autouse=True)
def _near(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a round trip takes is the load's decision here, and not of interest."""
    monkeypatch.setattr(doctor, "latency_findings", lambda seconds: ())


def ask(*options: str, **variables: str) -> Result:
    """Run the command with some variables of the environment."""
    return CliRunner().invoke(main, ["doctor", *options], env=variables)


def clock_that_is(seconds: float) -> Clock:
    """Return a host's clock that is so many seconds ahead of this one's."""
    return lambda: time.time() + seconds


def subjects(findings: Iterator[Finding] | list[Finding]) -> list[tuple[str, str]]:
    """Return severity and subject of each finding."""
    return [(found.severity, found.subject) for found in findings]


@pytest.fixture
def trouble(db: Connection) -> Connection:
    """A database with a finding of each severity."""
    db.execute("select rdq.create_queue('q')")
    db.execute("""
        insert into rdq.dead (task_id, queue, handler, life, dead_at, reason, fingerprint)
        select gen_random_uuid(), 'q', 'h', 0, now() - interval '3 hours', 'PERMANENT', 'f'
        """)
    db.execute("""
        insert into rdq.due (task_id, queue, due_at, life)
        select gen_random_uuid(), q, now() - interval '3 hours', 0
        from unnest('{q,lost}'::text[]) q
        """)
    return db


def test_where_nothing_is_wrong_it_says_so_and_ends_with_0(database: str) -> None:
    done = ask(RDQ_DSN=database)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "nothing is wrong\n", "")
    done = ask("--json", RDQ_DSN=database)
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])


def test_findings_are_printed_with_their_advice_the_worst_first(
    database: str, trouble: Connection
) -> None:
    done = ask(RDQ_DSN=database)
    assert done.exit_code == 8
    assert done.stdout.splitlines() == [
        "error    lost: the queue does not exist, but tasks that wait name it",
        "         select rdq.create_queue('lost');"
        "  -- its row was removed by hand; nothing in it can run",
        "warning  q: 1 task is due, the oldest for 3 hours, and no runner of this queue was seen in"
        " the last 30 seconds; other workers are not seen until they claim",
        "         rdq-runner run --queue q --handlers myapp.handlers"
        "  # the module with your handlers",
        "info     q: 1 dead letter, the oldest for 3 hours",
        "         select * from rdq.dead_letter_groups(queue => 'q');",
        "1 error, 1 warning, 1 info",
    ]


def test_in_json_each_finding_is_an_object(database: str, trouble: Connection) -> None:
    done = ask("--json", RDQ_DSN=database)
    rows = trouble.execute("select severity, subject, finding, advice from rdq.doctor()").fetchall()
    names = ("severity", "subject", "finding", "advice")
    assert done.exit_code == 8
    assert json.loads(done.stdout) == [dict(zip(names, row, strict=True)) for row in rows]


def test_what_is_only_worth_knowing_ends_with_0(database: str, trouble: Connection) -> None:
    trouble.execute("delete from rdq.due")
    done = ask(RDQ_DSN=database)
    assert done.stdout.endswith("\n1 info\n")
    assert done.exit_code == 0


def test_the_deep_check_is_asked_for(database: str, trouble: Connection) -> None:
    assert "without a task" not in ask(RDQ_DSN=database).stdout
    assert "without a task" in ask("--deep", RDQ_DSN=database).stdout


def test_what_others_wrote_does_not_act_on_the_terminal(database: str, trouble: Connection) -> None:
    trouble.execute("select rdq.pause_queue('q', %s)", ["\x1b]0;title\x07 \u202eevil"])
    trouble.execute("update rdq.queue set paused_at = now() - interval '1 hour'")
    done = ask(RDQ_DSN=database)
    assert "evil" in done.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)


def test_what_is_no_option_ends_with_2(database: str) -> None:
    done = ask("--depth", RDQ_DSN=database)
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("dsn", "reason", "where"),
    [
        ("host=127.0.0.1 port=1", "Connection refused", "pg_isready -h 127.0.0.1 -p 1 "),
        (
            "host=no-such-host.invalid",
            "no-such-host.invalid",
            "pg_isready -h no-such-host.invalid ",
        ),
        ("host=/nowhere port=7", "No such file or directory", "pg_isready -h /nowhere -p 7 "),
    ],
)
def test_a_database_that_cannot_be_reached_is_a_finding_and_an_error(
    dsn: str, reason: str, where: str
) -> None:
    secret = "geheim"
    done = ask("--json", RDQ_DSN=make_conninfo(dsn, password=secret))
    [finding] = json.loads(done.stdout)
    assert (finding["severity"], finding["subject"]) == ("error", "connection")
    assert reason in finding["finding"]
    assert finding["advice"].startswith(where)
    assert done.exit_code == 1
    assert secret not in done.output
    assert isinstance(done.exception, SystemExit)
    assert ask(RDQ_DSN=dsn).stdout.startswith("error    connection: ")


def test_a_database_without_rdq_is_a_finding(database: str, db: Connection) -> None:
    db.execute("drop schema rdq cascade")
    [finding] = examine(database)
    assert (finding.severity, finding.subject) == ("error", "schema")
    assert finding.advice == "rdq-runner migrate"


@pytest.mark.parametrize("version", ["0.0.9", "99.0.0"])
def test_a_schema_of_another_version_is_a_finding(
    database: str, db: Connection, version: str
) -> None:
    db.execute(
        "create or replace function rdq.version() returns text immutable language sql"
        f" return '{version}'".encode()
    )
    [finding] = examine(database)
    assert (finding.severity, finding.subject) == ("error", "schema")
    assert version in finding.finding


def test_a_schema_without_a_doctor_that_goes_deep_is_a_finding(
    database: str, db: Connection
) -> None:
    db.execute("drop function rdq.doctor(boolean)")
    assert subjects(examine(database)) == [("error", "schema")]


def test_a_role_without_access_is_told_how_to_get_it(primary: Server) -> None:
    with psycopg.connect(primary.dsn(), autocommit=True) as db:
        db.execute("""create role "it's me" login""")
        dsn = primary.dsn(user="it's me")
        [finding] = examine(dsn)
        assert (finding.severity, finding.subject) == ("error", "access")
        db.execute(finding.advice.encode())
        assert examine(dsn) == []


def test_a_check_that_the_database_ends_is_a_finding(database: str, db: Connection) -> None:
    db.execute("""
        create or replace function rdq._doctor_access()
        returns table (severity text, subject text, finding text, advice text)
        language sql stable
        as 'select null, null, null, pg_sleep(60)::text'
        """)
    [finding] = examine(make_conninfo(database, options="-c statement_timeout=100"))
    assert (finding.severity, finding.subject) == ("error", "doctor")
    assert "statement timeout" in finding.finding


@pytest.mark.parametrize("ahead", [5.0, 1.2, -1.2, -3600.0])
def test_a_host_whose_clock_is_wrong_is_told_by_how_much(database: str, ahead: float) -> None:
    [finding] = examine(database, clock=clock_that_is(ahead))
    assert (finding.severity, finding.subject) == ("warning", "clock")
    direction = "ahead of" if ahead > 0 else "behind"
    assert f"is {abs(ahead):.1f} s {direction} the database's" in finding.finding
    assert "1 s is the bound" in finding.finding


@pytest.mark.parametrize("ahead", [0.0, 0.8, -0.8])
def test_a_clock_within_the_bound_is_right(database: str, ahead: float) -> None:
    assert examine(database, clock=clock_that_is(ahead)) == []


@pytest.mark.parametrize(
    ("trip", "expected"),
    [
        (Trip(seconds=4, ahead=2.9), []),
        (Trip(seconds=4, ahead=-2.9), []),
        (Trip(seconds=4, ahead=3.1), [("warning", "clock")]),
        (Trip(seconds=4, ahead=-3.1), [("warning", "clock")]),
    ],
)
def test_half_of_the_round_trip_is_allowed_for(trip: Trip, expected: list[tuple[str, str]]) -> None:
    assert subjects(clock_findings(trip)) == expected


def test_a_long_way_to_the_database_is_worth_knowing() -> None:
    assert subjects(latency_findings(0.019)) == []
    [finding] = latency_findings(0.043)
    assert (finding.severity, finding.subject) == ("info", "connection")
    assert "43 ms" in finding.finding


@pytest.mark.parametrize(
    ("hostaddr", "encrypted", "said"),
    [
        ("", False, False),
        ("127.0.0.1", False, False),
        ("::1", False, False),
        ("192.0.2.7", True, False),
        ("192.0.2.7", False, True),
        ("2001:db8::7", False, True),
        ("fe80::1%eth0", False, True),
    ],
)
def test_a_connection_in_clear_that_leaves_the_host_is_worth_knowing(
    hostaddr: str, encrypted: bool, said: bool
) -> None:
    findings = list(encryption_findings(hostaddr, encrypted))
    assert subjects(findings) == [("info", "connection")] * said
    assert all(hostaddr in found.finding for found in findings)


def test_a_pooler_of_transactions_is_worth_knowing(pooler: Pooler) -> None:  # noqa: F811
    done = ask("--json", RDQ_DSN=pooler.dsn)
    [finding] = json.loads(done.stdout)
    assert (finding["severity"], finding["subject"]) == ("info", "connection")
    assert "pooler" in finding["finding"]
    assert done.exit_code == 0


def test_a_pooler_of_sessions_is_not(start_pooler: StartPooler) -> None:  # noqa: F811
    assert examine(start_pooler("session", 5).dsn) == []


def test_a_standby_is_a_finding_and_its_pooler_is_not_asked_for_notices(standby: Server) -> None:
    assert subjects(examine(standby.dsn())) == [("error", "database")]
    if not PROGRAM:
        pytest.skip("there is no pgbouncer: apt-get install pgbouncer")
    through = Pooler(standby.dsn(), "transaction", 2)
    try:
        assert subjects(examine(through.dsn)) == [("error", "database")]
    finally:
        through.stop()
