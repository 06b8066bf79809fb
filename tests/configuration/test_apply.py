"""What the file says of queues and endpoints is what the database has after it, or nothing is."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from rdq_runner import changes, configuration
from rdq_runner.definitions import Definitions
from tests.configuration.command import ROOT, rdq_runner
from tests.configuration.conftest import Apply, Contents
from tests.conftest import Connect

FILE = """
[queues.payments]
max_attempts = 3
backoff_base = "10 seconds"
jitter = 0.5
ladder = [1, "5 seconds"]
keep_dead = "forever"
notify = false
error_rules = [{ match = "Card*", class = "PERMANENT" }]

[queues."mails.eu"]

[endpoints.payments.charge]
url = "https://payments.example.com/charge"
timeout = 10
headers = { authorization = "Bearer s3cr3t" }
secret = "env:CHARGE_SECRET"
response_rules = [{ status = "409", class = "SUCCEEDED" }]
"""


def test_a_file_becomes_queues_and_endpoints_and_a_second_time_nothing_changes(
    apply: Apply, contents: Contents, db: psycopg.Connection[Any]
) -> None:
    first = apply(FILE).stdout
    assert first.splitlines() == [
        "+ queue mails.eu",
        "+ queue payments",
        "    max_attempts = 3",
        '    backoff_base = "00:00:10"',
        '    ladder = ["00:00:01", "00:00:05"]',
        "    jitter = 0.5",
        '    error_rules = [{"class": "PERMANENT", "match": "Card*"}]',
        "    keep_dead = none",
        "    notify = false",
        "+ endpoint payments charge",
        '    url = "https://payments.example.com/charge"',
        '    timeout = "00:00:10"',
        "    headers = authorization (values not shown)",
        '    secret = "env:CHARGE_SECRET"',
        '    response_rules = [{"class": "SUCCEEDED", "status": "409"}]',
        "3 changed",
    ]
    assert contents.queue("payments", "max_attempts", "lease") == ("3", "00:01:00")
    [endpoint] = db.execute("select timeout::text, secret from rdq.endpoints").fetchall()
    assert endpoint == ("00:00:10", "env:CHARGE_SECRET")
    before = contents()
    assert apply(FILE).stdout == "nothing to change\n"
    assert contents() == before


def test_the_file_of_the_documentation_is_one(apply: Apply, contents: Contents) -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert "\n3 changed\n" in apply(example).stdout
    assert contents.queue("payments", "max_attempts", "backoff_base") == ("6", "00:00:30")


def test_a_dry_run_shows_the_same_and_changes_nothing(apply: Apply, contents: Contents) -> None:
    before = contents()
    shown = apply(FILE, "--dry-run", exits=3).stdout
    assert contents() == before
    assert shown.endswith("3 would be changed; nothing was\n")
    done = apply(FILE).stdout
    assert shown.splitlines()[:-1] == done.splitlines()[:-1]
    assert apply(FILE, "--dry-run").stdout == "nothing to change\n"


def test_a_change_shows_what_it_was_and_what_it_becomes(apply: Apply, contents: Contents) -> None:
    apply(FILE)
    changed = FILE.replace("max_attempts = 3", "max_attempts = 4").replace("s3cr3t", "other")
    done = apply(changed)
    assert done.stdout.splitlines() == [
        "~ queue payments",
        "    max_attempts: 3 -> 4",
        "~ endpoint payments charge",
        "    headers: authorization (values not shown) -> authorization (values not shown)",
        "2 changed",
    ]


def test_what_the_file_leaves_out_goes_back_to_its_default(
    apply: Apply, contents: Contents, db: psycopg.Connection[Any]
) -> None:
    apply(FILE)
    db.execute("select rdq.alter_queue('payments', %s)", [Jsonb({"lease": "5 minutes"})])
    shorter = FILE.replace("jitter = 0.5\n", "").replace("timeout = 10\n", "")
    assert apply(shorter).stdout.splitlines() == [
        "~ queue payments",
        "    jitter: 0.5 -> 0.2",
        '    lease: "00:05:00" -> "00:01:00"',
        "~ endpoint payments charge",
        '    timeout: "00:00:10" -> "00:00:30"',
        "2 changed",
    ]


def test_what_is_not_in_the_file_is_left_alone_and_said(
    apply: Apply, contents: Contents, db: psycopg.Connection[Any]
) -> None:
    db.execute("select rdq.create_queue('by-hand', %s)", [Jsonb({"max_attempts": 2})])
    db.execute("select rdq.set_endpoint('by-hand', 'send', 'https://example.com')")
    done = apply("[queues.payments]\n")
    assert "queue by-hand is not in the file: left alone" in done.stdout
    assert "endpoint by-hand send is not in the file: left alone" in done.stdout
    assert contents.queue("by-hand", "max_attempts") == ("2",)


def test_a_paused_queue_stays_paused(apply: Apply, contents: Contents, db: Any) -> None:
    apply("[queues.payments]\n")
    db.execute("select rdq.pause_queue('payments', 'bank is down')")
    apply("[queues.payments]\nmax_attempts = 2\n")
    assert contents.queue("payments", "max_attempts", "pause_reason") == ("2", "bank is down")


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("[queues.p]\nmax_atempts = 3", ["queues.p.max_atempts: ", "did you mean max_attempts?"]),
        ("[queues.p]\nback-off-base = 3", ["queues.p.back-off-base: ", "mean backoff_base?"]),
        ("[queues.p]\nzzz = 3", ["queues.p.zzz: ", "the known ones are ambiguous_attempts, b"]),
        ("[queues.p]\npaused_at = 'x'", ["queues.p.paused_at: there is no such key"]),
        ("[queues.mails.eu]", ["queues.mails.eu: ", "a name that has a dot is written in quotes"]),
        ("[queues.p]\nmax_attempts = 0", ["queues.p.max_attempts: setting max_attempts is not v"]),
        ("[queues.p]\nmax_attempts = 0", ["max_attempts is a whole number from 1 to 10000."]),
        ("[queues.p]\nlease = 'soon'", ["queues.p.lease: ", 'is not valid: "soon"']),
        ("[queues.P]", ["queues.P: queue is not a valid name: 'P'"]),
        ('[queues."mails.EU"]', ['queues."mails.EU": queue is not a valid name']),
        ("[endpoints.p.h]\nurl = 'https://x'", ['endpoints.p.h: queue "p" does not exist']),
        ("[queues.p]\n[endpoints.p.h]\nurl = 'ftp://x'", ["endpoints.p.h.url: url is not valid"]),
        ("[queues.p]\n[endpoints.p.h]\n", ["endpoints.p.h: url is not valid: null"]),
        ("[queues.p]\n[endpoints.p.h]\nurll = 'x'", ["endpoints.p.h.urll: ", "did you mean url?"]),
        (
            "[queues.p]\n[endpoints.p.h]\nurl = 'https://x'\nsecret = 'hunter2'",
            ["endpoints.p.h.secret: secret is not a reference", "env:NAME"],
        ),
        (
            "[queues.p]\n[endpoints.p.h]\nurl = 'https://x'\ntimeout = 'soon'",
            ["endpoints.p.h.timeout: ", "interval"],
        ),
        (
            "[queues.p]\n[endpoints.p.h]\nurl = 'https://x'\ntimeout = true",
            ["endpoints.p.h", "interval"],
        ),
        (
            "[queues.p]\n[endpoints.p.h]\nurl = 'https://x'\nheaders = { host = 'x' }",
            ["endpoints.p.h.headers: headers is not valid"],
        ),
    ],
)
def test_what_the_database_refuses_is_shown_with_file_and_key(
    apply: Apply, contents: Contents, file: Any, text: str, complaints: list[str]
) -> None:
    before = contents()
    done = apply("[queues.another]\n" + text, exits=1)
    for complaint in complaints:
        assert complaint in done.stderr
    assert f"{file}: " in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    assert contents() == before


def test_all_errors_are_shown_at_once(apply: Apply, contents: Contents) -> None:
    before = contents()
    done = apply(
        "[queues.a]\nleese = 1\njiter = 1\n[queues.b]\nlease = 0\n[endpoints.a.h]\nurl = 'x'",
        exits=1,
    )
    assert len(done.stderr.splitlines()) == 4
    assert contents() == before


def test_every_setting_of_a_queue_can_be_given(db: psycopg.Connection[Any]) -> None:
    rules = {key for (key,) in db.execute("select key from rdq._setting_rules()")}
    definitions = Definitions(db)
    assert set(definitions.setting_names()) == rules
    assert definitions.endpoint_names() == ["url", "timeout", "headers", "secret", "response_rules"]


def test_two_at_once_take_turns(
    database: str, apply: Apply, contents: Contents, file: Any, db: psycopg.Connection[Any]
) -> None:
    apply("[queues.payments]\n")
    file.write_text(FILE)
    results: list[Any] = []

    def run() -> None:
        results.append(rdq_runner("apply", "--config", file, RDQ_DSN=database))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in results] == [0, 0, 0]
    assert sorted(done.stdout.splitlines()[-1] for done in results) == [
        "3 changed",
        "nothing to change",
        "nothing to change",
    ]


def test_who_keeps_the_turn_is_named(
    db: psycopg.Connection[Any], connect: Connect, file: Path
) -> None:
    file.write_text(FILE)
    stranger = connect()
    stranger.execute("select pg_advisory_lock(hashtextextended('rdq-runner apply', 0))")
    holder = f"process {stranger.info.backend_pid} of role .*; nothing was changed"
    with pytest.raises(psycopg.errors.LockNotAvailable, match=holder):
        changes.apply(db, configuration.load(file), wait_seconds=0.1)
    assert db.execute("select count(*) from rdq.queues").fetchone() == (0,)


@pytest.fixture
def operator(db: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may not configure."""
    yield from make_role(db, "operator", "*")


@pytest.fixture
def admin(db: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may configure one queue."""
    yield from make_role(db, "admin", "payments")


def make_role(db: psycopg.Connection[Any], capability: str, queues: str) -> Iterator[str]:
    """Give a role that has a capability, for as long as the test lasts."""
    role = f"rdq_{capability}_{uuid4().hex}"
    db.execute(f"create role {role}".encode())
    db.execute("select rdq.grant_access(%s, %s, array[%s])", [role, capability, queues])
    yield role
    db.execute(f"drop owned by {role}; drop role {role}".encode())


def test_a_role_that_may_not_configure_is_told_so_in_a_line(
    database: str, operator: str, apply: Apply, file: Any, db: Any
) -> None:
    file.write_text("[queues.payments]\n")
    done = rdq_runner("apply", "--config", file, RDQ_DSN=database, PGOPTIONS=f"-c role={operator}")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "permi" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_admin_of_some_queues_applies_a_file_about_them(
    database: str, admin: str, file: Any, db: psycopg.Connection[Any], contents: Contents
) -> None:
    db.execute("select rdq.create_queue('mails')")
    environment = {"RDQ_DSN": database, "PGOPTIONS": f"-c role={admin}"}
    file.write_text("[queues.payments]\nmax_attempts = 2\n")
    done = rdq_runner("apply", "--config", file, **environment)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 changed"), done.stderr
    file.write_text("[queues.mails]\nmax_attempts = 2\n")
    done = rdq_runner("apply", "--config", file, **environment)
    assert done.returncode == 1
    assert f"{file}: queues.mails: role" in done.stderr


def test_a_database_without_rdq_is_told_apart(apply: Apply, db: psycopg.Connection[Any]) -> None:
    db.execute("drop schema rdq cascade")
    assert "run rdq-runner migrate" in apply("[queues.payments]\n", exits=1).stderr


def test_apply_without_a_file_says_how_to_give_it(database: str) -> None:
    done = rdq_runner("apply", RDQ_DSN=database)
    assert done.returncode == 2
    assert "--config rdq.toml" in done.stderr
