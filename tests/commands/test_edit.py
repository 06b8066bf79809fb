"""An edit in an editor does what was shown, keeps what was typed, and can be taken back."""

import json
import re
import stat
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.terminal import Terminal
from tests.conftest import Connection

QUESTION = "[y/N]"
AGAIN = "[Y/n]"
OTHER_CARD = """sed -i 's/42/43/' "$1" """
OTHERS_EDIT = "select rdq.redrive(%s, 'of somebody else', reason => 'faster')"

Editor = Callable[[str], None]
Content = tuple[bytes, str, dict[str, str]]


@pytest.fixture
def drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are."""
    folder = tmp_path / "drafts"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def editor(tmp_path: Path, drafts: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """Make a script the editor: what it does with the file $1."""

    def make(script: str) -> None:
        path = tmp_path / "editor"
        path.write_text(f"#!/bin/sh\nset -e\n{script}\n")
        path.chmod(0o755)
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", str(path))

    return make


def content(db: Connection, task_id: UUID) -> Content:
    """Return what an edit may change."""
    [row] = db.execute("select payload, content_type, headers from rdq._task(%s)", [task_id])
    return row[0], row[1], row[2]


def stored(db: Connection) -> list[tuple[object, ...]]:
    """Return what no refusal changes."""
    return db.execute(
        """
        select t::text, d::text, (select count(*) from rdq.audit_log)
        from rdq.task t left join rdq.dead d on d.task_id = t.id
        order by 1
        """
    ).fetchall()


def kept(drafts: Path, said: str) -> bytes:
    """Return the text that was kept, after a look at who may read it, and whether it is named."""
    [folder] = drafts.iterdir()
    [file] = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert f"--payload-file {file}\n" in said.replace("\r", "")
    return file.read_bytes()


def edit(db: Connection, task_id: UUID, **changes: object) -> int:
    """Edit a dead letter, let it be one again, and return the number of the edit in the audit."""
    given = ", ".join(f"{name} => %({name})s" for name in changes)
    db.execute(f"select rdq.redrive(%(id)s, {given})".encode(), {"id": task_id, **changes})
    [(audit_id,)] = db.execute("select id from rdq.audit_log limit 1")
    db.execute("select rdq.cancel(%s)", [task_id])
    return int(audit_id)


def test_an_edit_is_shown_and_redriven(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, drafts: Path
) -> None:
    editor(OTHER_CARD)
    [task_id] = dead.letters(payload='{\n  "order": 42,\n  "card": "x"\n}\n')
    done = rdq("dlq", "edit", task_id, "--yes", "--reason", "mended", "--actor", "jane", "--json")
    assert json.loads(done.stdout)["status"] == "PENDING"
    assert done.stderr.splitlines() == [
        "--- payload, as it is",
        "+++ payload, as it would be",
        "@@ -1,5 +1,5 @@",
        " {",
        '-  "order": 42,',
        '+  "order": 43,',
        '   "card": "x"',
        " }",
        " ",
    ]
    assert content(db, task_id)[0] == b'{\n  "order": 43,\n  "card": "x"\n}\n'
    [row] = db.execute("select actor, reason from rdq.audit_log where action = 'redrive'")
    assert row == ("jane", "mended")
    assert [*drafts.iterdir()] == []


def test_the_editor_gets_a_private_file_that_tells_what_it_is(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, tmp_path: Path
) -> None:
    editor(f'stat -c "%a %n" "$1" "$(dirname "$1")" >> {tmp_path}/seen')
    dead.letters()
    db.execute(
        "select rdq.submit('payments', 'h', '{}'::jsonb, error => '{\"class\": \"PERMANENT\"}')"
    )
    for (task_id,) in db.execute("select id from rdq.task order by id").fetchall():
        rdq("dlq", "edit", task_id, exits=4)
    words = (tmp_path / "seen").read_text().split()
    assert words[::2] == ["600", "700", "600", "700"]
    assert [Path(name).name for name in words[1::4]] == ["payload.txt", "payload.json"]


@pytest.mark.parametrize(
    ("was", "script", "becomes"),
    [
        ("a 42", "echo 43 > $1", b"43"),
        ("a 42\n", "echo 43 > $1", b"43\n"),
        ("a 42\n", "printf 43 > $1", b"43"),
        ("a 42\r\nb", r"printf '43\r\nb\r\n' > $1", b"43\r\nb"),
        ("\ufeffa 42\r\n", OTHER_CARD, b"\xef\xbb\xbfa 43\r\n"),
        ("ä\u2028 42\f\v\n\n", OTHER_CARD, "ä\u2028 43\f\v\n\n".encode()),
        ("", "printf 43 > $1", b"43"),
        ("text", r"printf 'a\0b' > $1", b"a\0b"),
    ],
)
def test_what_was_not_edited_stays_byte_for_byte(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, was: str, script: str, becomes: bytes
) -> None:
    editor(script)
    [task_id] = dead.letters(payload=was)
    rdq("dlq", "edit", task_id, "--yes")
    assert content(db, task_id)[0] == becomes


@pytest.mark.parametrize("script", ["true", "echo >> $1", "printf '\\n' >> $1"])
def test_a_text_that_was_not_changed_changes_nothing(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, drafts: Path, script: str
) -> None:
    editor(script)
    [task_id] = dead.letters()
    before = stored(db)
    done = rdq("dlq", "edit", task_id, "--yes", "--run-at", "1h", exits=4)
    assert (
        done.stderr
        == "nothing differs, so nothing was changed: 'dlq redrive' puts it back as it is\n"
    )
    assert stored(db) == before
    assert [*drafts.iterdir()] == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "editor: Editing failed; nothing was changed"),
        (": > $1", "the file is empty; nothing was changed"),
        ("echo > $1", "the file is empty; nothing was changed"),
        ("rm $1", "payload.txt: cannot be read: No such file or directory; nothing was changed"),
    ],
)
def test_an_editor_that_leaves_nothing_changes_nothing(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, drafts: Path, script: str, said: str
) -> None:
    editor(script)
    [task_id] = dead.letters()
    before = stored(db)
    assert said in rdq("dlq", "edit", task_id, "--yes", exits=1).stderr
    assert stored(db) == before
    assert [*drafts.iterdir()] == []


@pytest.mark.parametrize("name", ["/there/is/none", "'vi"])
def test_an_editor_that_cannot_be_started_is_named(
    rdq: Rdq, dead: Dead, editor: Editor, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    editor("true")
    monkeypatch.setenv("VISUAL", name)
    [task_id] = dead.letters()
    said = rdq("dlq", "edit", task_id, exits=1).stderr
    assert said.startswith("Error: ")
    assert "EDITOR" in said
    assert "; nothing was changed" in said
    assert dead.count() == 1


def test_a_folder_that_takes_no_file_is_told_of(
    rdq: Rdq, dead: Dead, editor: Editor, drafts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor("true")
    monkeypatch.setattr(tempfile, "tempdir", str(drafts / "none"))
    [task_id] = dead.letters()
    said = rdq("dlq", "edit", task_id, exits=1).stderr
    assert "cannot be written: No such file or directory; nothing was changed\nHint: " in said


def test_an_editor_that_fails_after_it_has_saved_loses_nothing(
    rdq: Rdq, dead: Dead, editor: Editor, drafts: Path
) -> None:
    editor(f"{OTHER_CARD}; exit 1")
    [task_id] = dead.letters()
    failed = rdq("dlq", "edit", task_id, "--yes", exits=1)
    assert kept(drafts, failed.stderr) == b'{"order": 43}'
    assert dead.count() == 1


@pytest.mark.parametrize("payload", [b"\xff\xfe", b"a\0b"])
def test_a_payload_that_is_no_text_is_not_for_an_editor(
    rdq: Rdq, dead: Dead, editor: Editor, drafts: Path, payload: bytes
) -> None:
    editor("echo opened")
    [task_id] = dead.letters(payload=payload)
    said = rdq("dlq", "edit", task_id, "--yes", exits=1).stderr
    assert f"the payload has {len(payload)} bytes that are no text in UTF-8" in said
    assert f"rdq-runner dlq redrive {task_id} --payload-file FILE" in said
    assert [*drafts.iterdir()] == []


def test_only_a_dead_letter_is_edited(rdq: Rdq, dead: Dead, editor: Editor, drafts: Path) -> None:
    editor("echo opened")
    [task_id] = dead.letters()
    rdq("dlq", "redrive", task_id)
    for command in ("edit", "revert"):
        said = rdq("dlq", command, task_id, "--yes", exits=1).stderr
        assert f"task {task_id} is PENDING, not DEAD; nothing was changed\nHint: " in said
        rdq("dlq", command, uuid4(), "--yes", exits=4)
    assert [*drafts.iterdir()] == []


def json_letter(db: Connection) -> UUID:
    query = """
        select rdq.submit('payments', 'h', '{"order": 42}'::json, error => '{"class": "PERMANENT"}')
    """
    [(task_id,)] = db.execute(query)
    return UUID(str(task_id))


def test_what_is_not_json_is_edited_again(
    database: str, dead: Dead, db: Connection, editor: Editor, drafts: Path
) -> None:
    editor("""grep -q 43 "$1" && echo '}' >> "$1" || printf '{"order": 43\\n' > "$1" """)
    task_id = json_letter(db)
    with Terminal(database, "dlq", "edit", task_id) as terminal:
        terminal.expect(AGAIN)
        assert "the payload is not JSON: " in terminal.output
        assert re.search(r"line \d column \d+", terminal.output)
        terminal.type("")
        terminal.expect(QUESTION)
        terminal.type("y")
        assert terminal.ended() == 0
    assert content(db, task_id)[0] == b'{"order": 43}'
    assert [*drafts.iterdir()] == []


def test_what_is_not_json_and_stays_so_is_kept(
    rdq: Rdq, database: str, dead: Dead, db: Connection, editor: Editor, drafts: Path
) -> None:
    editor("echo '{' > $1")
    task_id = json_letter(db)
    before = stored(db)
    for options in ([], ["--yes"]):
        failed = rdq("dlq", "edit", task_id, *options, exits=1)
        assert "the payload is not JSON: " in failed.stderr
        assert "line 1 column 2" in failed.stderr
        assert kept(drafts, failed.stderr) == b"{"
        subprocess.run(["rm", "-r", *drafts.iterdir()], check=True)
    with Terminal(database, "dlq", "edit", task_id, columns=1000) as terminal:
        terminal.expect(AGAIN)
        terminal.type("n")
        assert terminal.ended() == 5
    assert kept(drafts, terminal.output) == b"{"
    assert stored(db) == before
    rdq("dlq", "edit", task_id, "--yes", "--content-type", "text/plain")
    assert content(db, task_id)[:2] == (b"{", "text/plain")


def test_the_difference_has_colours_and_executes_nothing(
    database: str, dead: Dead, db: Connection, editor: Editor, drafts: Path
) -> None:
    editor(r"printf 'a\033]0;x\007\tb\r\n' > $1")
    [task_id] = dead.letters(payload="-- a")
    with Terminal(database, "dlq", "edit", task_id, "--header", "a=1") as terminal:
        terminal.expect(QUESTION)
        assert "Redrive it with this change?" in terminal.output
        terminal.type("n")
        assert terminal.ended() == 5
    assert "\x1b[31m--- a" in terminal.output
    assert r"+a\x1b]0;x\x07\tb\r" in terminal.output
    assert "\x1b]" not in terminal.output
    assert "\x1b[32m+a=1" in terminal.output
    assert dead.count() == 1


def test_a_dry_run_shows_it_and_changes_nothing_else(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, drafts: Path
) -> None:
    editor(OTHER_CARD)
    [task_id] = dead.letters()
    edit(db, task_id, headers=Jsonb({"a": "1"}))
    before = stored(db)
    assert '+{"order": 43}' in rdq("dlq", "edit", task_id, "--dry-run", exits=3).stdout
    shown = rdq("dlq", "edit", task_id, "--dry-run", "--json", exits=3)
    assert json.loads(shown.stdout) == {
        "task_id": str(task_id),
        "before": {"payload": b64encode(b'{"order": 42}').decode()},
        "after": {"payload": b64encode(b'{"order": 43}').decode()},
    }
    assert "-a=1" in rdq("dlq", "revert", task_id, "--dry-run", exits=3).stdout
    shown = rdq("dlq", "revert", task_id, "--dry-run", "--jsonl", exits=3)
    assert json.loads(shown.stdout)["after"] == {"headers": {}}
    assert stored(db) == before


def test_without_a_terminal_and_without_yes_nothing_is_done(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor, drafts: Path
) -> None:
    editor(OTHER_CARD)
    [task_id] = dead.letters()
    edit(db, task_id, content_type="text/x")
    before = stored(db)
    refused = rdq("dlq", "edit", task_id, stdin="y\n", exits=5)
    assert '+{"order": 43}' in refused.stderr
    assert "give --yes to confirm" in refused.stderr
    assert kept(drafts, refused.stderr) == b'{"order": 43}'
    assert "give --yes to confirm" in rdq("dlq", "revert", task_id, stdin="y\n", exits=5).stderr
    assert stored(db) == before


@pytest.mark.parametrize("command", ["edit", "revert"])
def test_a_process_without_stdin_has_nobody_to_ask(
    database: str, dead: Dead, db: Connection, editor: Editor, command: str
) -> None:
    editor(OTHER_CARD)
    [task_id] = dead.letters()
    edit(db, task_id, content_type="text/x")
    before = stored(db)
    program = [sys.executable, "-m", "rdq_runner", "dlq", command, str(task_id), "--dsn", database]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *program]
    done = subprocess.run(closed, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (5, False)
    assert "refused: there is no terminal to ask on" in done.stderr
    assert stored(db) == before


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        (OTHERS_EDIT, "is PENDING, not DEAD"),
        (
            f"{OTHERS_EDIT}; select rdq.cancel(%s)",
            "was redriven by somebody else, and is DEAD again",
        ),
        ("select rdq.purge(%s)", "does not exist"),
    ],
)
def test_an_edit_of_a_task_that_has_changed_meanwhile_is_refused_and_kept(
    rdq: Rdq,
    database: str,
    dead: Dead,
    db: Connection,
    editor: Editor,
    drafts: Path,
    statement: str,
    status: str,
) -> None:
    [task_id] = dead.letters()
    text = statement.replace("%s", f"'{task_id}'")
    program = f'import psycopg; psycopg.connect("{database}", autocommit=True).execute("{text}")'
    # As some editors do it: another file in the place of the first.
    editor(f"""
        {sys.executable} - <<'END'\n{program}\nEND
        umask 022; echo mine > "$1.new"; mv "$1.new" "$1"
    """)
    refused = rdq("dlq", "edit", task_id, "--yes", exits=4 if "exist" in status else 1)
    assert f"Error: task {task_id} {status}" in refused.stderr
    assert "\nHint: " in refused.stderr
    assert kept(drafts, refused.stderr) == b"mine"
    if "exist" not in status:
        assert content(db, task_id)[0] == b"of somebody else"


def test_an_edit_may_change_the_headers_and_the_type_alone(
    rdq: Rdq, dead: Dead, db: Connection, editor: Editor
) -> None:
    editor("true")
    [task_id] = dead.letters()
    db.execute("select rdq.alter_queue('payments', '{\"max_payload_bytes\": 0}')")
    options = ["--content-type", "text/x", "--header", "a=1", "--header", "b=x=y"]
    times = ["--run-at", "in 2h", "--to-handler", "other"]
    done = rdq("dlq", "edit", task_id, *options, *times, "--yes")
    for line in ("-text/plain; charset=utf-8", "+text/x", "+a=1", "+b=x=y"):
        assert f"\n{line}\n" in done.stderr
    assert content(db, task_id) == (b'{"order": 42}', "text/x", {"a": "1", "b": "x=y"})
    [row] = db.execute(
        """
        select t.handler, d.due_at > now() + interval '119 minutes'
        from rdq.task t join rdq.due d on d.task_id = t.id
        """
    )
    assert row == ("other", True)


EDITS: dict[str, dict[str, object]] = {
    "payload": {"payload": "other"},
    "bytes": {"payload": b"\0\xff"},
    "an empty payload": {"payload": ""},
    "content type": {"content_type": "application/json"},
    "headers": {"headers": Jsonb({"a": "1"})},
    "all": {"payload": "{}", "content_type": "application/json", "headers": Jsonb({"a": "1"})},
}


@pytest.mark.parametrize(
    ("was", "changes"),
    [
        pytest.param(was, changes, id=f"{was!r}, {name}")
        for was in ('{"order": 42}', "", b"\xff")
        for name, changes in EDITS.items()
        if changes != {"payload": was}
    ],
)
def test_a_revert_brings_back_what_an_edit_replaced(
    rdq: Rdq, dead: Dead, db: Connection, was: str | bytes, changes: dict[str, object]
) -> None:
    [task_id] = dead.letters(payload=was)
    before = content(db, task_id)
    assert before[2] == {}
    edit(db, task_id, **changes)
    edited = content(db, task_id)
    assert edited != before
    done = rdq("dlq", "revert", task_id, "--yes", "--reason", "it was right", "--json")
    assert json.loads(done.stdout)["status"] == "PENDING"
    assert "as it would be" in done.stderr
    assert content(db, task_id) == before
    [(reason,)] = db.execute("select reason from rdq.audit_log limit 1")
    assert reason == "it was right"
    # And forth again.
    db.execute("select rdq.cancel(%s)", [task_id])
    rdq("dlq", "revert", task_id, "--yes")
    assert content(db, task_id) == edited


def test_a_revert_keeps_what_that_edit_did_not_change(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [task_id] = dead.letters(payload="one")
    first = edit(db, task_id, payload="two")
    edit(db, task_id, headers=Jsonb({"a": "1"}))
    edit(db, task_id, payload="three")
    edit(db, task_id, reason="no edit")
    shown = rdq("dlq", "revert", task_id, first, "--yes").stderr
    assert f"edit {first} of " in shown
    assert "-three\n+one\n" in shown
    assert content(db, task_id) == (b"one", "text/plain; charset=utf-8", {"a": "1"})


def test_the_last_edit_is_the_one_that_changed_something(
    rdq: Rdq, dead: Dead, db: Connection
) -> None:
    [task_id] = dead.letters(payload="one")
    edit(db, task_id, payload="two")
    edit(db, task_id, to_handler="other")
    edit(db, task_id, payload="two")
    said = rdq("dlq", "revert", task_id, "--yes").stderr
    assert "elsewhere" not in said
    assert content(db, task_id)[0] == b"one"


def test_a_revert_says_that_it_does_not_send_back(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [task_id] = dead.letters(payload="one")
    edit(db, task_id, payload="two", to_queue="mails")
    said = rdq("dlq", "revert", task_id, "--yes").stderr
    assert "it also sent the task elsewhere, where it stays: --to-queue" in said
    assert db.execute("select queue from rdq.tasks").fetchall() == [("mails",)]


def test_a_revert_to_what_it_is_changes_nothing(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [task_id] = dead.letters(payload="one")
    first = edit(db, task_id, payload="two")
    edit(db, task_id, payload="one")
    before = stored(db)
    done = rdq("dlq", "revert", task_id, first, "--yes", exits=4)
    assert "nothing differs, so nothing was changed" in done.stderr
    assert stored(db) == before


def test_what_a_revert_leaves_is_not_checked_again(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [task_id] = dead.letters(payload="one")
    first = edit(db, task_id, payload="two", headers=Jsonb({"a": "1"}))
    edit(db, task_id, payload="one")
    db.execute("select rdq.alter_queue('payments', '{\"max_payload_bytes\": 0}')")
    rdq("dlq", "revert", task_id, first, "--yes")
    assert content(db, task_id) == (b"one", "text/plain; charset=utf-8", {})


def test_where_nothing_is_left_to_go_back_to_it_says_so(
    rdq: Rdq, dead: Dead, db: Connection
) -> None:
    [task_id, other] = dead.letters(2)
    edit(db, task_id, reason="as it is")
    edited = edit(db, other, payload="x")
    said = rdq("dlq", "revert", task_id, "--yes", exits=4).stderr
    assert f"the audit has no edit of task {task_id}; nothing was changed\nHint: " in said
    said = rdq("dlq", "revert", task_id, edited, "--yes", exits=4).stderr
    assert f"the audit has no edit {edited} of task {task_id}; nothing was changed" in said
    with db.transaction():
        db.execute("set local session_replication_role = replica")
        db.execute("update rdq.audit set at = at - interval '2 days'")
    db.execute("select rdq.purge_audit('1 day')")
    before = stored(db)
    said = rdq("dlq", "revert", other, "--yes", exits=4).stderr
    assert "rdq.purge_audit has deleted it" in said
    assert stored(db) == before


def test_a_revert_of_a_task_that_has_changed_meanwhile_is_refused(
    database: str, dead: Dead, db: Connection
) -> None:
    [task_id] = dead.letters(payload="one")
    edit(db, task_id, payload="two")
    with Terminal(database, "dlq", "revert", task_id) as terminal:
        terminal.expect(QUESTION)
        edit(db, task_id, payload="three")
        terminal.type("y")
        assert terminal.ended() == 1
    assert "is DEAD again; nothing was changed" in " ".join(terminal.output.split())
    assert content(db, task_id)[0] == b"three"
