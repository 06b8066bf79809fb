"""Watching a bulk redrive, and telling it what to do."""

import json
import re
from typing import Any
from uuid import UUID

import pytest

from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.terminal import Terminal
from tests.conftest import Connection
from tests.waiting import wait_until


@pytest.fixture
def begin(rdq: Rdq, dead: Dead) -> Any:
    """Begin a redrive of some dead letters."""

    def run(count: int, *options: str) -> UUID:
        dead.letters(count)
        done = rdq("dlq", "redrive", "--queue", "payments", "--yes", "--json", *options)
        return UUID(json.loads(done.stdout)["redrive_id"])

    return run


def test_a_watch_ends_with_0_when_all_have_succeeded(database: str, dead: Dead, begin: Any) -> None:
    redrive_id = begin(10, "--canary", "2")
    options = ["redrive", "watch", redrive_id, "--interval", "0.05"]
    with Terminal(database, *options, piped=True) as terminal:
        terminal.expect("RUNNING: 2 sent, 0 succeeded, 0 died, 0 skipped, waiting for the canary")
        assert dead.work(succeed=True) == 2
        dead.tick()
        terminal.expect("DONE: 10 sent, 2 succeeded")
        assert dead.work(succeed=True) == 8
        assert terminal.ended() == 0
        assert "10/10" in terminal.output
        assert "\x1b[" in terminal.output
        result = terminal.result()
    assert "\x1b" not in result
    assert re.search(r"^succeeded +10$", result, re.MULTILINE)


def test_a_watch_ends_with_7_when_some_died_again(rdq: Rdq, dead: Dead, begin: Any) -> None:
    redrive_id = begin(10)
    dead.work(succeed=True, at_most=9)
    dead.work(succeed=False)
    dead.tick()
    done = rdq("redrive", "watch", redrive_id, exits=7)
    assert "10 of 10: DONE: 10 sent, 9 succeeded, 1 died, 0 skipped\n" in done.stderr
    assert "1 died again" in done.stderr


def test_a_watch_ends_with_6_when_it_halts_and_says_why(rdq: Rdq, dead: Dead, begin: Any) -> None:
    redrive_id = begin(10, "--canary", "2")
    dead.work(succeed=False)
    dead.tick()
    done = rdq("redrive", "watch", redrive_id, "--json", exits=6)
    row = json.loads(done.stdout)
    assert (row["state"], row["died"], row["sent"]) == ("HALTED", 2, 2)
    assert f"the redrive is HALTED: {row['state_reason']}" in done.stderr
    assert f"go on: rdq-runner redrive resume {redrive_id}" in done.stderr


@pytest.mark.parametrize("word", ["pause", "cancel"])
def test_a_watch_ends_with_6_when_somebody_stops_it(
    database: str, rdq: Rdq, begin: Any, word: str
) -> None:
    redrive_id = begin(10, "--canary", "2")
    options = ["redrive", "watch", redrive_id, "--interval", "0.05"]
    with Terminal(database, *options) as terminal:
        terminal.expect("RUNNING")
        rdq("redrive", word, redrive_id, "--reason", "not \x1b[31mnow")
        assert terminal.ended() == 6
        assert "\x1b[31mnow" not in terminal.output


def test_a_redrive_is_watched_at_once_with_a_line_for_each_change(
    database: str, dead: Dead
) -> None:
    dead.letters(4)
    options = ["dlq", "redrive", "--all", "--yes", "--watch", "--interval", "0.05", "--jsonl"]
    with Terminal(database, *options, piped=True) as terminal:
        terminal.expect("DONE: 4 sent")
        dead.work(succeed=True)
        assert terminal.ended() == 0
        rows = [json.loads(line) for line in terminal.result().splitlines()]
    assert [row["succeeded"] for row in rows] == [0, 4]


def test_ctrl_c_ends_the_watching_and_not_the_redrive(
    database: str, begin: Any, db: Connection
) -> None:
    redrive_id = begin(10, "--canary", "2")
    with Terminal(database, "redrive", "watch", redrive_id) as terminal:
        terminal.expect("RUNNING")
        terminal.interrupt()
        assert terminal.ended() == 130
        assert f"it goes on: rdq-runner redrive watch {redrive_id}" in terminal.output
    assert db.execute("select state from rdq.redrives").fetchone() == ("RUNNING",)


def test_a_watch_goes_on_when_its_connection_is_lost(
    database: str, dead: Dead, begin: Any, db: Connection
) -> None:
    redrive_id = begin(2)
    name = "watching"
    options = ["redrive", "watch", redrive_id, "--interval", "0.05"]
    with Terminal(database, *options, PGAPPNAME=name) as terminal:
        terminal.expect("DONE: 2 sent")
        end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s"
        wait_until(lambda: bool(db.execute(end, [name]).fetchall()))
        terminal.expect("the database is away, trying again")
        dead.work(succeed=True)
        assert terminal.ended() == 0


def test_a_resume_shows_what_it_will_send_and_asks(
    database: str, rdq: Rdq, dead: Dead, begin: Any, db: Connection
) -> None:
    redrive_id = begin(10, "--canary", "2")
    dead.work(succeed=False)
    dead.tick()
    assert "give --yes" in rdq("redrive", "resume", redrive_id, exits=5).stderr
    with Terminal(database, "redrive", "resume", redrive_id) as terminal:
        terminal.expect("Send the other 8? [y/N]")
        assert "HALTED" in terminal.output
        terminal.type("n")
        assert terminal.ended() == 5
    assert db.execute("select state from rdq.redrives").fetchone() == ("HALTED",)
    resumed = rdq("redrive", "resume", redrive_id, "--yes", "--reason", "mended", "--json")
    assert json.loads(resumed.stdout)["state"] == "RUNNING"


def test_redrives_are_listed_by_state(rdq: Rdq, begin: Any) -> None:
    first = begin(1)
    second = begin(3, "--canary", "1")
    rows = json.loads(rdq("redrive", "list", "--json").stdout)
    assert [row["redrive_id"] for row in rows] == [str(second), str(first)]
    [row] = json.loads(rdq("redrive", "list", "--state", "RUNNING", "--json").stdout)
    assert row["redrive_id"] == str(second)
    assert json.loads(rdq("redrive", "show", second, "--json").stdout) == row
    rdq("redrive", "show", UUID(int=1), exits=4)
