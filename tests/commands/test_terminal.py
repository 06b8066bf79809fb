"""Tables, colours, the live view, and completion."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rdq_runner.commands.dead_letters import LIST_COLUMNS
from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.terminal import Terminal
from tests.conftest import Connection
from tests.waiting import wait_until

SCRIPT = Path(sys.executable).with_name("rdq-runner")


def lines(text: str) -> list[str]:
    """Return the lines of a terminal without what sets colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "").splitlines()


def test_a_terminal_has_colour_and_a_pipe_has_none(database: str, rdq: Rdq, dead: Dead) -> None:
    dead.letters()
    with Terminal(database, "dlq", "list", columns=200) as terminal:
        assert terminal.ended() == 0
    assert "\x1b[31mPERMANENT" in terminal.output
    with Terminal(database, "dlq", "list", columns=200, NO_COLOR="1") as plain:
        assert plain.ended() == 0
    assert "\x1b[31m" not in plain.output
    assert "PERMANENT" in plain.output
    assert "\x1b" not in rdq("dlq", "list").stdout


@pytest.mark.parametrize("columns", [20, 60, 80, 120, 300])
def test_a_narrow_terminal_has_fewer_columns_and_none_is_half_there(
    database: str, dead: Dead, columns: int
) -> None:
    ids = dead.letters(3, message="a message that is longer than many a terminal " * 4)
    with Terminal(database, "dlq", "list", columns=columns) as terminal:
        assert terminal.ended() == 0
    shown = lines(terminal.output)
    header = next(line for line in shown if "task_id" in line).split()
    if columns >= 60:
        assert all(any(str(task_id) in line for line in shown) for task_id in ids)
        assert max(map(len, shown)) <= columns
        known = [*LIST_COLUMNS]
        assert header == [name for name in known if name in header]
        left_out = [name for name in known if name not in header]
        assert ("no room for" in terminal.output) == bool(left_out)
    if columns == 80:
        assert header[:3] == ["task_id", "dead_at", "error_type"]


def test_a_pipe_has_whole_lines_with_aligned_columns(rdq: Rdq, dead: Dead) -> None:
    dead.letters(message="é" * 150)
    dead.letters(message="漢字")
    header, *rows = rdq("dlq", "list").stdout.splitlines()
    assert header.split()[-1] == "message"
    assert rows[1].endswith("é" * 150)
    place = header.index("message")
    assert [row[place] for row in rows] == ["漢", "é"]


def test_top_shows_queues_runners_and_redrives_until_ctrl_c(
    database: str, rdq: Rdq, dead: Dead, db: Connection
) -> None:
    dead.letters(30)
    db.execute("select rdq.runner_seen('runner-1', 'host', '1', 'v7', array['payments'], 8, 2)")
    rdq("dlq", "redrive", "--all", "--yes", "--per-second", "0.01")
    with Terminal(database, "top", "--interval", "0.05", columns=160) as terminal:
        for shown in ("payments", "runner-1", "v7", "RUNNING", "Ctrl-C ends"):
            terminal.expect(shown)
        terminal.expect("mails", times=3)
        dead.letters(7, queue="mails")
        terminal.expect(" 7 ")
        terminal.interrupt()
        assert terminal.ended() == 0
    assert "Traceback" not in terminal.output


def test_top_goes_on_when_its_connection_is_lost(database: str, dead: Dead, db: Connection) -> None:
    with Terminal(database, "top", "--interval", "0.05", PGAPPNAME="top") as terminal:
        terminal.expect("payments")
        end = (
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'top'"
        )
        wait_until(lambda: bool(db.execute(end).fetchall()))
        terminal.expect("the database is away, trying again")
        before = terminal.output.count("payments")
        terminal.expect("payments", times=before + 1)
        terminal.interrupt()
        assert terminal.ended() == 0


def test_top_is_shown_once_in_a_pipe_and_a_line_each_time_as_json_lines(
    database: str, rdq: Rdq, dead: Dead
) -> None:
    dead.letters(2)
    once = json.loads(rdq("top", "--json").stdout)
    assert list(once) == ["queues", "runners", "redrives"]
    assert [queue["dead"] for queue in once["queues"]] == [0, 2]
    assert "payments" in rdq("top").stdout
    with Terminal(database, "top", "--jsonl", "--interval", "0.05", piped=True) as terminal:
        assert terminal.process.stdout is not None
        for _ in range(3):
            assert list(json.loads(terminal.process.stdout.readline())) == list(once)
        terminal.interrupt()
        assert terminal.ended() == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    script = subprocess.run(
        [SCRIPT, "completion", shell], capture_output=True, text=True, check=True
    ).stdout
    assert "_RDQ_RUNNER_COMPLETE" in script
    words = {"bash": "rdq-runner dlq re", "zsh": "rdq-runner dlq re", "fish": "rdq-runner dlq"}
    answer = subprocess.run(
        [SCRIPT],
        env={
            **os.environ,
            "_RDQ_RUNNER_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": words[shell],
            "COMP_CWORD": "re" if shell == "fish" else "2",
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "redrive" in answer
    assert "purge" not in answer


def test_bash_takes_the_script(tmp_path: Path) -> None:
    command = f'source <("{SCRIPT}" completion bash) && complete -p rdq-runner'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "complete" in done.stdout
    assert done.stderr == ""
