"""A redrive does what was shown, after it was asked for, and no more."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.terminal import Terminal
from tests.conftest import Connection

QUESTION = "[y/N]"


def test_what_dies_while_the_preview_is_read_is_not_redriven(database: str, dead: Dead) -> None:
    dead.letters(40)
    with Terminal(database, "dlq", "redrive", "--queue", "payments") as terminal:
        terminal.expect(QUESTION)
        assert "Redrive 40 dead letters, all at once?" in terminal.output
        dead.letters(500)
        terminal.type("y")
        assert terminal.ended() == 0
    assert dead.count() == 500
    assert dead.work(succeed=True) == 40


def test_an_end_that_was_given_does_not_reach_beyond_the_preview(database: str, dead: Dead) -> None:
    dead.letters(4)
    options = ["--queue", "payments", "--until", "in 2h"]
    with Terminal(database, "dlq", "redrive", *options) as terminal:
        terminal.expect(QUESTION)
        dead.letters(5)
        terminal.type("y")
        assert terminal.ended() == 0
    assert dead.count() == 5


@pytest.mark.parametrize("command", ["redrive", "purge"])
def test_a_death_that_was_under_way_is_shown_before_anything_is_done(
    database: str, dead: Dead, connect: Callable[..., Connection], db: Connection, command: str
) -> None:
    dead.letters(3)
    dying = connect(autocommit=False)
    dying.execute("select rdq.submit('payments', 'h', 'x', error => '{\"class\": \"PERMANENT\"}')")
    with Terminal(database, "dlq", command, "--queue", "payments") as terminal:
        terminal.expect(QUESTION)
        assert "3 dead letters" in terminal.output
        dying.commit()
        terminal.type("y")
        terminal.expect(QUESTION, times=2)
        assert "more match now than were shown; nothing was changed" in terminal.output
        assert "4 dead letters" in terminal.output
        terminal.type("n")
        assert terminal.ended() == 5
    assert dead.count() == 4
    assert db.execute("select * from rdq.audit_log where action like '%where'").fetchall() == []


@pytest.mark.parametrize("command", ["redrive", "purge"])
def test_without_a_terminal_and_without_yes_it_refuses(
    rdq: Rdq, dead: Dead, db: Connection, command: str
) -> None:
    dead.letters(3)
    before = db.execute("select * from rdq.audit_log").fetchall()
    refused = rdq("dlq", command, "--queue", "payments", stdin="y\n", exits=5)
    assert "3 dead letters" in refused.stderr
    assert "give --yes to confirm" in refused.stderr
    assert refused.stdout == ""
    assert dead.count() == 3
    assert db.execute("select * from rdq.audit_log").fetchall() == before


@pytest.mark.parametrize("command", ["redrive", "purge"])
def test_a_process_without_stdin_has_nobody_to_ask(database: str, dead: Dead, command: str) -> None:
    dead.letters()
    program = [sys.executable, "-m", "rdq_runner", "dlq", command, "--all", "--dsn", database]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *program]
    done = subprocess.run(closed, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (5, False)
    assert "refused: there is no terminal to ask on" in done.stderr
    assert dead.count() == 1


@pytest.mark.parametrize("command", ["redrive", "purge"])
@pytest.mark.parametrize("answer", ["n", "", "\x04"])
def test_any_answer_but_yes_changes_nothing(
    database: str, dead: Dead, command: str, answer: str
) -> None:
    dead.letters(3)
    with Terminal(database, "dlq", command, "--queue", "payments") as terminal:
        terminal.expect(QUESTION)
        terminal.type(answer)
        assert terminal.ended() == 5
        assert "nothing was changed" in terminal.output
    assert dead.count() == 3


@pytest.mark.parametrize("command", ["redrive", "purge"])
def test_a_dry_run_shows_it_and_changes_nothing(
    rdq: Rdq, dead: Dead, db: Connection, command: str
) -> None:
    dead.letters(3)
    dead.letters(2, error_type="KeyError")
    before = db.execute("select * from rdq.audit_log").fetchall()
    options = ["--queue", "payments", "--dry-run"]
    for_people = rdq("dlq", command, *options, exits=3)
    assert "5 dead letters that died before " in for_people.stdout
    assert "TimeoutError" in for_people.stdout
    shown = json.loads(rdq("dlq", command, *options, "--json", exits=3).stdout)
    assert [group["count"] for group in shown["groups"]] == [3, 2]
    if command == "redrive":
        assert "warning: 5 failed as PERMANENT" in for_people.stdout
        assert (shown["state"], shown["matched"], len(shown["warnings"])) == ("DRY_RUN", 5, 1)
    else:
        assert (shown["purged"], shown["remaining"]) == (0, 5)
    assert dead.count() == 5
    assert db.execute("select * from rdq.audit_log").fetchall() == before


@pytest.mark.parametrize("command", ["redrive", "purge"])
def test_that_nothing_matches_is_an_exit_status_of_its_own(
    rdq: Rdq, dead: Dead, db: Connection, command: str
) -> None:
    dead.letters(1)
    for more in (["--yes"], ["--dry-run"], []):
        rdq("dlq", command, "--queue", "mails", *more, exits=4)
    assert dead.count() == 1
    assert db.execute("select * from rdq.redrives").fetchall() == []


@pytest.mark.parametrize("command", ["redrive", "purge"])
def test_everything_must_be_said(rdq: Rdq, dead: Dead, command: str) -> None:
    dead.letters(3)
    said = rdq("dlq", command, "--yes", exits=2).stderr
    assert "--all means everything" in said
    rdq("dlq", command, "--yes", "--all", "--queue", "payments", exits=2)
    assert dead.count() == 3
    rdq("dlq", command, "--yes", "--all")
    assert dead.count() == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--queue", "payments"],
        ["--all"],
        ["--canary", "3"],
        ["--per-second", "1"],
        ["--watch"],
        ["--dry-run"],
    ],
)
def test_what_is_of_many_is_refused_with_one(rdq: Rdq, dead: Dead, options: list[str]) -> None:
    [task_id] = dead.letters()
    rdq("dlq", "redrive", task_id, *options, exits=2)
    assert dead.count() == 1


@pytest.mark.parametrize(
    "options",
    [["--payload", "x"], ["--content-type", "x"], ["--header", "a=b"], ["--run-at", "1h"]],
)
def test_a_redrive_of_many_edits_nothing(rdq: Rdq, dead: Dead, options: list[str]) -> None:
    dead.letters(2)
    rdq("dlq", "redrive", "--queue", "payments", "--yes", *options, exits=2)
    assert dead.count() == 2


@pytest.mark.parametrize("content", [b'{"order": 43}\n', b"a\0b", b"\0\xff\x1b", "\xe4\n".encode()])
def test_a_payload_from_a_file_is_kept_byte_for_byte(
    rdq: Rdq, dead: Dead, db: Connection, tmp_path: Path, content: bytes
) -> None:
    [one, other] = dead.letters(2)
    file = tmp_path / "payload"
    file.write_bytes(content)
    done = rdq("dlq", "redrive", one, "--payload-file", file, "--reason", "mended", "--json")
    assert json.loads(done.stdout)["status"] == "PENDING"
    rdq("dlq", "redrive", other, "--payload-file", "-", stdin=content)
    rows = db.execute("select payload from rdq.task").fetchall()
    assert rows == [(content,), (content,)]
    [(reason, before)] = db.execute(
        "select reason, before ->> 'payload' from rdq.audit_log where task_id = %s", [one]
    )
    assert (reason, before) == ("mended", "eyJvcmRlciI6IDQyfQ==")


def test_an_edit_changes_what_it_names(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [task_id] = dead.letters()
    options = ["--content-type", "text/x", "--header", "a=1", "--header", "b=x=y"]
    times = ["--run-at", "in 2h", "--give-up-at", "2126-01-01T00:00:00Z"]
    rdq("dlq", "redrive", task_id, *options, *times, "--actor", "jane")
    [row] = db.execute(
        """
        select payload, content_type, headers, d.due_at > now() + interval '119 minutes',
          extract(year from d.give_up_at)
        from rdq.task t join rdq.due d on d.task_id = t.id
        """
    )
    assert row == (b'{"order": 42}', "text/x", {"a": "1", "b": "x=y"}, True, 2126)
    assert db.execute("select actor from rdq.audit_log where action = 'redrive'").fetchone() == (
        "jane",
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--payload", "x", "--payload-file", "y"], "give one of --payload and --payload-file"),
        (["--header", "a"], "'a' is no header: give NAME=VALUE"),
        (["--run-at", "soon"], "'soon' is no time"),
    ],
)
def test_an_edit_that_is_none_is_a_wrong_command_line(
    rdq: Rdq, dead: Dead, options: list[str], complaint: str
) -> None:
    [task_id] = dead.letters()
    assert complaint in rdq("dlq", "redrive", task_id, *options, exits=2).stderr
    assert dead.count() == 1


def test_a_file_that_is_not_there_is_named(rdq: Rdq, dead: Dead, tmp_path: Path) -> None:
    [task_id] = dead.letters()
    done = rdq("dlq", "redrive", task_id, "--payload-file", tmp_path / "none", exits=1)
    assert f"{tmp_path / 'none'}: cannot be read: No such file" in done.stderr


def test_the_pace_is_that_of_the_options(rdq: Rdq, dead: Dead, db: Connection) -> None:
    dead.letters(30)
    options = ["--canary", "5", "--per-second", "10", "--halt-at", "12.5%", "--halt-min", "7"]
    done = rdq("dlq", "redrive", "--queue", "payments", *options, "--yes", "--json")
    begun = json.loads(done.stdout)
    assert (begun["state"], begun["matched"], begun["sent"]) == ("RUNNING", 30, 5)
    assert (begun["per_second"], begun["canary"]) == (10, 5)
    assert (begun["halt_at"], begun["halt_min"]) == (0.125, 7)
    assert f"rdq-runner redrive watch {begun['redrive_id']}" in done.stderr
    rdq("dlq", "redrive", "--queue", "payments", "--halt-at", "never", "--spread", "10m", "--yes")
    [(halt_at, spread)] = db.execute(
        "select halt_at, matched / per_second from rdq.redrives order by began_at desc limit 1"
    )
    assert (halt_at, round(spread)) == (None, 600)
    for share in ("half", "1%%", "nan"):
        rdq("dlq", "redrive", "--queue", "payments", "--halt-at", share, "--yes", exits=2)


def test_what_the_database_refuses_ends_with_its_hint(rdq: Rdq, dead: Dead) -> None:
    [task_id] = dead.letters()
    rdq("dlq", "redrive", task_id)
    twice = rdq("dlq", "redrive", task_id, exits=1)
    assert twice.stderr.startswith(f"Error: task {task_id} is PENDING, not DEAD; nothing was ch")
    assert "\nHint: Only a dead letter can be redriven" in twice.stderr
    rdq("dlq", "redrive", uuid4(), exits=4)
    rdq("dlq", "redrive", "--queue", "payments", "--canary", "-1", "--dry-run", exits=1)
    rdq("dlq", "redrive", "not-an-id", exits=2)


def test_an_edit_is_of_the_type_that_the_task_has(
    rdq: Rdq, db: Connection, dead: Dead, tmp_path: Path
) -> None:
    dead.letters(1)
    db.execute(
        "select rdq.submit('payments', 'h', '{}'::jsonb, error => '{\"class\": \"PERMANENT\"}')"
    )
    [(task_id,)] = db.execute("select id from rdq.task where content_type = ''").fetchall()
    file = tmp_path / "payload"
    file.write_text("")
    empty = rdq("dlq", "redrive", task_id, "--payload-file", file, exits=1)
    assert "is empty; nothing was changed" in empty.stderr
    for content in ('{"order": 42, "add', "order 42"):
        file.write_text(content)
        cut = rdq("dlq", "redrive", task_id, "--payload-file", file, exits=1)
        assert "the payload is not JSON" in cut.stderr
    rdq("dlq", "redrive", task_id, "--payload", "order 42", exits=1)
    assert dead.count() == 2
    rdq("dlq", "redrive", task_id, "--payload", "order 42", "--content-type", "text/plain")
    assert dead.count() == 1
