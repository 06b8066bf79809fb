"""A purge goes batch by batch, and deletes what was shown."""

import json

import psycopg
from click.testing import CliRunner

from rdq_runner.cli import main
from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.commands.terminal import Terminal
from tests.conftest import Connection


def batches(db: Connection) -> list[int]:
    """Return how many each call has purged."""
    rows = db.execute("select affected from rdq.audit where action = 'purge_where' order by id")
    return [affected for (affected,) in rows]


def test_a_purge_commits_batch_after_batch_and_says_how_far_it_is(
    rdq: Rdq, dead: Dead, db: Connection
) -> None:
    dead.letters(25)
    dead.letters(3, queue="mails")
    options = ["--queue", "payments", "--batch", "10", "--yes", "--reason", "old"]
    done = rdq("dlq", "purge", *options, "--json")
    assert json.loads(done.stdout) == {"purged": 25, "remaining": 0}
    assert batches(db) == [10, 10, 5]
    progress = ["10 of 25: 15 remain", "20 of 25: 5 remain", "25 of 25: 0 remain"]
    assert done.stderr.splitlines()[-3:] == progress
    assert (dead.count(), dead.count("mails")) == (0, 3)


def test_what_dies_while_the_preview_is_read_is_not_purged(database: str, dead: Dead) -> None:
    dead.letters(5)
    with Terminal(database, "dlq", "purge", "--queue", "payments") as terminal:
        terminal.expect("Delete 5 dead letters, with payloads and histories? [y/N]")
        dead.letters(7)
        terminal.type("y")
        assert terminal.ended() == 0
        assert "5/5" in terminal.output
    assert dead.count() == 7


def test_what_was_purged_before_an_error_is_said(database: str, dead: Dead, db: Connection) -> None:
    dead.letters(25)
    db.execute(
        """
        create function rdq._fails_later() returns trigger language plpgsql as $$
        begin
          if (select count(*) from rdq.audit where action = 'purge_where') = 2 then
            raise 'disk \x1b[31mfull';
          end if;
          return new;
        end $$;
        create trigger fails_later before insert on rdq.audit
        for each row execute function rdq._fails_later()
        """
    )
    words = ["dlq", "purge", "--queue", "payments", "--batch", "10", "--yes", "--dsn", database]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "stopped: 20 dead letters purged, the others are untouched" in done.stderr
    assert "Error: disk \\x1b[31mfull" in done.stderr
    assert dead.count() == 5


def test_what_turns_up_in_a_later_batch_is_left(database: str, dead: Dead, db: Connection) -> None:
    dead.letters(20)
    dying = psycopg.connect(database)
    dying.execute("select rdq.submit('payments', 'h', 'x', error => '{\"class\": \"PERMANENT\"}')")
    # A batch waits for this row, so that the other death is committed between two of them.
    holding = psycopg.connect(database)
    [(last,)] = holding.execute("select task_id from rdq.dead order by dead_at desc limit 1")
    holding.execute("select from rdq.attempt where task_id = %s for update", [last])
    with Terminal(database, "dlq", "purge", "--all", "--batch", "15", "--yes") as terminal:
        terminal.expect("15/20")
        dying.commit()
        holding.rollback()
        status = terminal.ended()
    dying.close()
    holding.close()
    assert status == 6
    assert "stopped: 15 dead letters purged" in terminal.output
    assert dead.count() == 6
    assert batches(db) == [15]


def test_one_task_is_purged_without_a_question(rdq: Rdq, dead: Dead, db: Connection) -> None:
    [task_id] = dead.letters()
    assert rdq("dlq", "purge", task_id, "--reason", "a test").stdout == (
        f"task {task_id} is purged\n"
    )
    assert dead.count() == 0
    assert db.execute("select reason from rdq.audit_log where action = 'purge'").fetchone() == (
        "a test",
    )
    rdq("dlq", "purge", task_id, exits=4)
    rdq("dlq", "purge", task_id, "--dry-run", exits=2)
