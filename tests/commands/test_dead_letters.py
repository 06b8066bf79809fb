"""What died, and why: for people, for machines, and never raw."""

import json
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.terminal import Terminal
from tests.conftest import Connection

EVIL = "no \x1b]0;title\x07\x1b[2J\x9b31m\u202egnp\u2028end \U000e0041"


def acts(text: str) -> list[str]:
    """Return what a terminal would act on, colours of the table aside."""
    known = ("\x1b]0", "\x07", "\x1b[2J", "\x9b", "\u202e", "\u2028", "\U000e0041")
    return [part for part in known if part in text]


def test_a_list_is_a_list_of_the_function(rdq: Rdq, dead: Dead, db: Connection) -> None:
    ids = dead.letters(5)
    rows = json.loads(rdq("dlq", "list", "--json").stdout)
    columns = [c.name for c in db.execute("select * from rdq.dead_letters()").description or ()]
    assert list(rows[0]) == columns
    assert [UUID(row["task_id"]) for row in rows] == ids[::-1]
    died = datetime.fromisoformat(rows[0]["dead_at"])
    assert died.tzinfo == UTC
    assert timedelta() < datetime.now(UTC) - died < timedelta(minutes=1)


def test_pages_follow_each_other_and_a_long_list_is_read_in_pages(
    rdq: Rdq, dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdq_runner.commands.dead_letters._PAGE", 4)
    ids = [str(task_id) for task_id in dead.letters(11)][::-1]
    lines = rdq("dlq", "list", "--limit", 9, "--jsonl").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["task_id"] for row in rows] == ids[:9]
    rest = json.loads(rdq("dlq", "list", "--after", rows[-1]["page"], "--json").stdout)
    assert [row["task_id"] for row in rest] == ids[9:]
    assert f"--after '{rows[2]['page']}'" in rdq("dlq", "list", "--limit", 3).stderr
    assert "--after" not in rdq("dlq", "list", "--limit", 12).stderr


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--queue", "payments"], 3),
        (["--handler", "charge"], 4),
        (["--error-type", "Time*"], 2),
        (["--error-class", "AMBIGUOUS"], 0),
        (["--dead-reason", "PERMANENT"], 4),
        (["--fingerprint", "0" * 16], 0),
        (["--since", "1h"], 4),
        (["--since", "in 1h"], 0),
        (["--until", "1h ago"], 0),
        (["--until", "now", "--since", "2020-01-01"], 4),
        (["--queue", "mails", "--error-type", "KeyError"], 0),
    ],
)
def test_list_groups_and_timeline_have_one_filter(
    rdq: Rdq, dead: Dead, options: list[str], found: int
) -> None:
    dead.letters(2, error_type="KeyError")
    dead.letters(1)
    dead.letters(1, queue="mails")
    assert len(json.loads(rdq("dlq", "list", *options, "--json").stdout)) == found
    for command in ("groups", "timeline"):
        groups = json.loads(rdq("dlq", command, *options, "--json").stdout)
        assert sum(group["count"] for group in groups) == found


def test_an_empty_list_is_no_error(rdq: Rdq, dead: Dead) -> None:
    for command in ("list", "groups", "timeline"):
        assert (rdq("dlq", command).stdout, rdq("dlq", command).stderr) == ("", "none\n")
        assert json.loads(rdq("dlq", command, "--json").stdout) == []
        assert rdq("dlq", command, "--jsonl").stdout == ""


def test_a_class_that_is_none_is_refused_by_the_database(rdq: Rdq) -> None:
    assert "Hint: " in rdq("dlq", "list", "--error-class", "TRANSENT", exits=1).stderr


def test_a_task_is_shown_whole_and_its_payload_alone(rdq: Rdq, dead: Dead) -> None:
    [text] = dead.letters(payload="line\none")
    [binary] = dead.letters(payload=b"\0\xff\x1b")
    envelope = json.loads(rdq("dlq", "show", text, "--json").stdout)
    assert (envelope["id"], envelope["payload"]) == (str(text), "bGluZQpvbmU=")
    assert envelope["attempts"][0]["stack"] == "a:1\nb:2"
    assert envelope["created_at"].endswith("+00:00")
    shown = rdq("dlq", "show", text).stdout
    assert "line\n" in shown
    assert "TimeoutError" in shown
    assert "3 bytes that are no text" in rdq("dlq", "show", binary).stdout
    assert rdq("dlq", "show", binary, "--payload").stdout_bytes == b"\0\xff\x1b"
    rdq("dlq", "show", uuid4(), exits=4)


def test_a_history_has_its_stacks_when_it_is_wide(rdq: Rdq, dead: Dead) -> None:
    [task_id] = dead.letters()
    assert "a:1" not in rdq("dlq", "history", task_id).stdout
    assert "a:1\n              b:2\n" in rdq("dlq", "history", task_id, "--wide").stdout
    [attempt] = json.loads(rdq("dlq", "history", task_id, "--json").stdout)
    assert (attempt["attempt_no"], attempt["stack"]) == (1, "a:1\nb:2")


def test_times_are_relative_and_absolute_when_wide(rdq: Rdq, dead: Dead, db: Connection) -> None:
    dead.letters()
    db.execute("update rdq.dead set dead_at = clock_timestamp() - interval '125 seconds'")
    [(died,)] = db.execute("select date_trunc('second', dead_at) from rdq.dead")
    # It goes on growing older while it is listed.
    assert re.search(r"[ (]2m \d+s ago", rdq("dlq", "list").stdout)
    wide = rdq("dlq", "list", "--wide").stdout
    assert re.search(rf"{died.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z \(2m \d+s ago\)", wide)


COMMANDS = [
    ["dlq", "list"],
    ["dlq", "list", "--wide"],
    ["dlq", "list", "--json"],
    ["dlq", "list", "--jsonl"],
    ["dlq", "groups"],
    ["dlq", "timeline"],
    ["dlq", "redrive", "--all", "--dry-run"],
    ["dlq", "purge", "--all", "--dry-run", "--show-sql"],
]


@pytest.mark.parametrize("options", COMMANDS, ids=" ".join)
def test_nothing_that_is_stored_acts_on_the_terminal(
    database: str, rdq: Rdq, dead: Dead, options: list[str]
) -> None:
    dead.letters(error_type=EVIL, message=EVIL)
    with Terminal(database, *options, columns=300) as terminal:
        terminal.ended()
    assert acts(terminal.output) == []
    assert "x1b]0" in terminal.output or "u001b]0" in terminal.output
    piped = rdq(*options, exits=3 if "--dry-run" in options else 0).output
    assert acts(piped) == []


def test_neither_does_a_task_with_its_payload_and_stack(
    database: str, rdq: Rdq, dead: Dead
) -> None:
    [task_id] = dead.letters(payload=EVIL, message=EVIL)
    for options in (["show"], ["show", "--payload"], ["show", "--json"], ["history", "--wide"]):
        command, *more = options
        with Terminal(database, "dlq", command, task_id, *more) as terminal:
            assert terminal.ended() == 0
        assert acts(terminal.output) == []
        assert "x1b]0" in terminal.output or "u001b]0" in terminal.output
    assert json.loads(rdq("dlq", "list", "--json").stdout)[0]["message"] == EVIL
    assert rdq("dlq", "show", task_id, "--payload").stdout_bytes == EVIL.encode()


def test_a_task_is_shown_and_cancelled(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [(task_id,)] = db.execute("select rdq.submit('payments', 'charge', 'x')")
    assert json.loads(rdq("task", "show", task_id, "--json").stdout)["status"] == "PENDING"
    cancelled = rdq("task", "cancel", task_id, "--reason", "sent twice", "--json")
    row = json.loads(cancelled.stdout)
    assert (row["status"], row["dead_reason"]) == ("DEAD", "CANCELLED")
    rdq("task", "cancel", task_id, exits=1)
    rdq("task", "show", uuid4(), exits=4)


def test_the_audit_is_filtered(rdq: Rdq, dead: Dead) -> None:
    [one, other] = dead.letters(2)
    rdq("dlq", "purge", one, "--actor", "jane", "--reason", "a test")
    rdq("dlq", "purge", other)
    for options, found in (
        (["--task", one], [str(one)]),
        (["--who", "jane"], [str(one)]),
        (["--action", "purge"], [str(other), str(one)]),
        (["--action", "purge", "--limit", "1"], [str(other)]),
        (["--action", "purge", "--until", "1h"], []),
        (["--action", "purge", "--since", "1h", "--queue", "payments"], [str(other), str(one)]),
        (["--redrive", uuid4()], []),
    ):
        rows = json.loads(rdq("audit", *options, "--json").stdout)
        assert [row["task_id"] for row in rows] == found
    assert "a test" in rdq("audit", "--task", one).stdout
