"""Queues are made, changed, paused and dropped."""

import json

import pytest
from click.testing import CliRunner

from rdq_runner.cli import main
from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.conftest import Connection


def test_a_queue_lives_from_create_to_drop(rdq: Rdq, db: Connection) -> None:
    settings = ["max_attempts=3", "backoff_base=10 seconds", "ladder=[1, 60]", "keep_dead=forever"]
    made = json.loads(rdq("queue", "create", "payments", *settings, "--json").stdout)
    assert (made["max_attempts"], made["backoff_base"], made["ladder"]) == (3, 10, [1, 60])
    assert (made["keep_dead"], made["paused"], made["dead"]) == (None, False, 0)
    altered = rdq("queue", "alter", "payments", "max_attempts=null", "notify=false", "--json")
    assert json.loads(altered.stdout)["max_attempts"] == 8
    paused = rdq("queue", "pause", "payments", "--reason", "the bank\x1b[31m")
    assert "the bank\\x1b[31m" in paused.stdout
    assert json.loads(rdq("queue", "show", "payments", "--json").stdout)["paused"] is True
    resumed = json.loads(rdq("queue", "resume", "payments", "--json").stdout)
    assert (resumed["paused"], resumed["notify"]) == (False, False)
    assert rdq("queue", "drop", "payments").stdout == "queue payments is dropped\n"
    rows = db.execute("select action from rdq.audit order by id").fetchall()
    words = ["create", "alter", "pause", "resume", "drop"]
    assert rows == [(f"{word}_queue",) for word in words]


@pytest.mark.parametrize(
    ("settings", "exits", "complaint"),
    [
        (["max_atempts=3"], 1, 'setting "max_atempts" does not exist\nHint: The settings are:'),
        (["max_attempts=0"], 1, "max_attempts is a whole number from 1 to 10000"),
        (["max_attempts=1e999"], 1, "max_attempts is not valid"),
        (["max_attempts=NaN"], 1, "max_attempts is not valid"),
        (["lease=soon"], 1, 'setting lease is not valid: "soon"'),
        (["lease"], 2, "'lease' is no setting: give NAME=VALUE"),
        (["lease=1", "lease=2"], 2, "setting 'lease' is given twice"),
        ([], 2, "give a setting, such as max_attempts=6"),
    ],
)
def test_a_setting_that_is_none_is_refused(
    rdq: Rdq, dead: Dead, settings: list[str], exits: int, complaint: str
) -> None:
    assert complaint in rdq("queue", "alter", "payments", *settings, exits=exits).stderr


def test_what_is_not_there_is_an_exit_status_of_its_own(rdq: Rdq) -> None:
    for words in (["show"], ["alter", "lease=1"], ["pause"], ["resume"], ["drop"]):
        command, *settings = words
        done = rdq("queue", command, "nope", *settings, exits=4)
        assert "nope" in done.stderr
        assert "Hint: " in done.stderr
        assert done.stdout == ""


def test_a_list_shows_what_is_in_each(rdq: Rdq, dead: Dead) -> None:
    dead.letters(3)
    [mails, payments] = json.loads(rdq("queue", "list", "--json").stdout)
    assert (mails["queue"], mails["dead"], mails["oldest_dead_age"]) == ("mails", 0, None)
    assert (payments["dead"], payments["due"]) == (3, 0)
    assert 0 <= payments["oldest_dead_age"] < 60
    plain = rdq("queue", "list").stdout
    header, first, _ = plain.splitlines()
    assert header.split()[:2] == ["queue", "paused"]
    assert first.split()[:3] == ["mails", "no", "0"]
    assert header.index("paused") == first.index("no")


def test_the_actor_is_whom_the_variable_names(database: str, dead: Dead, db: Connection) -> None:
    variables = {"RDQ_DSN": database, "RDQ_ACTOR": "jane"}
    CliRunner().invoke(main, ["queue", "pause", "payments"], env=variables)
    CliRunner().invoke(main, ["queue", "resume", "payments", "--actor", "joe"], env=variables)
    rows = db.execute("select actor from rdq.audit where action ~ 'pause|resume' order by id")
    assert rows.fetchall() == [("jane",), ("joe",)]
