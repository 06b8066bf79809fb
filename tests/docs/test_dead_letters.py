"""Whatever the page for the night tells people to type does what it says, from top to bottom."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner

from rdq_runner import Ambiguous, Handlers, Runner, Task
from rdq_runner.cli import main
from rdq_runner.commands.exits import Exit
from tests.commands.dead import Dead
from tests.conftest import Connection
from tests.docs import night
from tests.waiting import wait_until
from tools.postgres import embedded_binaries

# What each of the two columns of the page does in the end.
ACTIONS = {
    "pause_queue",
    "resume_queue",
    "redrive_where",
    "pause_redrive",
    "resume_redrive",
    "cancel_redrive",
    "redrive",
    "purge",
    "purge_where",
    "cancel",
}

handlers = Handlers()


@handlers.handler("charge")
def charge(task: Task) -> None:
    """Succeed: the cause is gone."""


@handlers.handler("lose")
def lose(task: Task) -> None:
    """Fail, and leave in doubt what has happened."""
    raise Ambiguous("sent, no answer")


class Scene:
    """Dead letters of which there are always enough, and redrives to speak of."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._dead = Dead(db)

    def set_for(self, text: str) -> str:
        """Make true what somebody who types this has before them; return it with real ids."""
        if self._dead.count() < 40:
            self._dead.letters(60)
        if "AMBIGUOUS" in text:
            self._lose_one()
        if re.search(r"redrive pause|pause_redrive", text):
            self._begin_a_slow_one()
        text = text.replace(night.FINGERPRINT, str(self._one("fingerprint", "rdq.dead_letters")))
        return text.replace(night.ID, str(self._subject(text)))

    def _subject(self, text: str) -> UUID:
        if re.search(r"rdq-runner redrive|redrive_status|(pause|resume|cancel)_redrive", text):
            return self._one("redrive_id", "rdq.redrives order by began_at desc")
        if re.search(r"task cancel|rdq\.cancel", text):
            query = "select rdq.submit('payments', 'charge', 'x', run_at => now() + '1 hour')"
            [(task_id,)] = self._db.execute(query).fetchall()
            return UUID(str(task_id))
        task_id = self._one("task_id", "rdq.dead_letters")
        if re.search(r"dlq revert|before \?\|", text):
            self._edit(task_id)
        return task_id

    def _edit(self, task_id: UUID) -> None:
        query = "select rdq.redrive(%s, 'edited', run_at => now() + interval '1 hour')"
        self._db.execute(query, [task_id])
        self._db.execute("select rdq.cancel(%s)", [task_id])

    def _begin_a_slow_one(self) -> None:
        self._db.execute("select rdq.redrive_where('payments', per_second => 0.1)")

    def _lose_one(self) -> None:
        self._db.execute("select rdq.alter_queue('payments', '{\"ambiguous_attempts\": 1}')")
        self._db.execute("select rdq.submit('payments', 'lose', 'x')")
        query = "select count(*) from rdq.dead_letters where error_class = 'AMBIGUOUS'"
        wait_until(lambda: self._db.execute(query).fetchone() == (1,))

    def _one(self, column: str, source: str) -> UUID:
        [(value,)] = self._db.execute(f"select {column} from {source} limit 1".encode()).fetchall()
        return value  # type: ignore[no-any-return]

    def audited(self) -> set[str]:
        """Return what somebody did who called herself ada."""
        query = "select distinct action from rdq.audit_log where actor = 'ada'"
        return {action for (action,) in self._db.execute(query).fetchall()}


class Psql:
    """A session in psql that ends at the first error."""

    def __init__(self, dsn: str) -> None:
        binaries = embedded_binaries()
        assert binaries
        self._process = subprocess.Popen(
            [binaries / "psql", "-Xqb", "-v", "ON_ERROR_STOP=1", "-d", dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def paste(self, statement: str) -> str:
        """Return what psql prints."""
        assert self._process.stdin
        assert self._process.stdout
        end = uuid4().hex
        self._process.stdin.write(f"{statement}\n\\echo {end}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.strip() == end:
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"{statement}\n{''.join(lines)}")

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture
def scene(db: Connection, database: str) -> Iterator[Scene]:
    found = Scene(db)
    with Runner(database, queues=["payments"], handlers=handlers, poll_interval=0.1):
        yield found


def test_each_line_for_the_shell_does_what_it_says(
    scene: Scene, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RDQ_DSN", database)
    monkeypatch.setenv("VISUAL", "sed -i s/42/43/")
    lines = night.shell_lines()
    for line in lines:
        if match := re.fullmatch(r"export (\w+)=(\w+)", line):
            monkeypatch.setenv(*match.groups())
            continue
        command, _, file = scene.set_for(line).partition(" > ")
        output = run_shown(command)
        if file:
            (tmp_path / file).write_text(output)
    assert scene.audited() == ACTIONS


def run_shown(command: str) -> str:
    """Run a command, and answer yes; return what it prints."""
    program, *words = shlex.split(command)
    assert program == "rdq-runner"
    asks = night.path(words) in {
        ("dlq", "redrive"),
        ("dlq", "edit"),
        ("dlq", "revert"),
        ("dlq", "purge"),
        ("redrive", "resume"),
    }
    if asks and "--dry-run" not in words:
        words.append("--yes")
    result = CliRunner().invoke(main, words)
    expected = {Exit.WOULD_CHANGE} if "--dry-run" in words else {Exit.DONE}
    if words == ["doctor"]:
        expected |= {Exit.FOUND}
    assert result.exit_code in expected, f"{command}: {result.output}"
    return result.stdout


def test_each_statement_for_psql_does_what_it_says(scene: Scene, database: str) -> None:
    psql = Psql(database)
    try:
        for statement in night.statements():
            output = psql.paste(scene.set_for(statement))
            assert "(0 rows)" not in output or "rdq.doctor" in statement, statement
    finally:
        psql.close()
    assert scene.audited() == ACTIONS


def test_the_page_explains_every_warning_of_a_dry_run(db: Connection) -> None:
    db.execute("select rdq.create_queue('q', '{\"ambiguous_attempts\": 1}')")
    db.execute("select rdq.submit('q', 'h', 'x', dedupe_key => 'k', give_up_at => now() + '1 day')")
    db.execute("select rdq.submit('q', 'h', 'y')")
    db.execute("select rdq.submit('q', 'late', 'z', give_up_at => now() - interval '1 minute')")
    db.execute("select rdq.tick()")
    for error_class in ("PERMANENT", "AMBIGUOUS"):
        db.execute(
            """
            select f.*
            from rdq.claim('{q}', 'worker', 1, code_version => 'v1') c
            cross join lateral rdq.fail(c.task_id, c.claim_token, 'E', error_class => %s) f
            """,
            [error_class],
        )
    db.execute("select rdq.submit('q', 'h', 'x', dedupe_key => 'k')")
    db.execute("update rdq.task set give_up_at = now() - interval '1 minute' where handler = 'h'")
    db.execute("update rdq.task set created_at = now() - interval '1 day' where handler = 'h'")
    [(warnings,)] = db.execute("select warnings from rdq.redrive_where('q', dry_run => true)")
    explained = [
        re.sub("…", ".*", re.escape(row[0].removeprefix("…").strip()))
        for row in night.rows_of("warning")
    ]
    assert len(warnings) == len(explained)
    for pattern in explained:
        assert len([warning for warning in warnings if re.search(pattern, warning)]) == 1, pattern


def test_the_page_has_a_word_on_every_reason_class_and_state(db: Connection) -> None:
    named = {*re.findall(r"`([A-Z]+)`", night.TEXT)}
    checks = db.execute(
        """
        select string_agg(pg_get_constraintdef(oid), '')
        from pg_constraint
        where conrelid in ('rdq.dead'::regclass, 'rdq.redrive_run'::regclass) and contype = 'c'
        """
    ).fetchone()
    assert checks
    words = {*re.findall(r"'([A-Z]+)'", checks[0])} - {"CANARY", "REST"}
    assert words > {"UNROUTABLE", "HALTED"}
    assert words <= named
