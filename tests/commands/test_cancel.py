"""Live tasks are cancelled by what they have in common; dead letters are sent elsewhere."""

import json

from tests.commands.conftest import Rdq
from tests.commands.dead import Dead
from tests.conftest import Connection


def submit(db: Connection, handler: str, count: int) -> None:
    db.execute("select rdq.create_queue('mails')")
    db.execute(
        "select rdq.submit('mails', %s, 'x'::text) from generate_series(1, %s)", [handler, count]
    )


def live(db: Connection) -> int:
    row = db.execute("select count(*) from rdq.due").fetchone()
    assert row
    return int(row[0])


def test_many_are_cancelled_after_a_question(rdq: Rdq, db: Connection) -> None:
    submit(db, "newsletter", 5)
    submit(db, "receipt", 2)
    filters = ("--queue", "mails", "--handler", "newsletter")
    shown = rdq("task", "cancel", *filters, "--dry-run", "--json", exits=3)
    assert json.loads(shown.stdout)["remaining"] == 5
    rdq("task", "cancel", *filters, stdin="n\n", exits=5)
    assert live(db) == 7
    done = rdq("task", "cancel", *filters, "--reason", "wrong text", "--json", "--yes")
    assert json.loads(done.stdout) == {"cancelled": 5, "remaining": 0}
    assert live(db) == 2
    assert db.execute(
        "select affected, reason from rdq.audit_log where action = 'cancel_where'"
    ).fetchall() == [(5, "wrong text")]
    rdq("task", "cancel", *filters, "--yes", exits=4)


def test_what_was_cancelled_before_an_error_is_said(rdq: Rdq, db: Connection) -> None:
    submit(db, "newsletter", 5)
    db.execute(
        """
        create function rdq._fails() returns trigger language plpgsql as $$
        begin
          raise 'disk full';
        end $$;
        create trigger fails before insert on rdq.audit for each row execute function rdq._fails()
        """
    )
    failed = rdq("task", "cancel", "--queue", "mails", "--yes", exits=1)
    assert "stopped: 0 tasks cancelled, the others are untouched" in failed.stderr
    assert live(db) == 5


def test_a_cancel_of_nothing_in_particular_is_refused(rdq: Rdq, db: Connection) -> None:
    submit(db, "newsletter", 1)
    rdq("task", "cancel", exits=2)
    rdq("task", "cancel", "01980000-0000-7000-8000-000000000000", "--queue", "mails", exits=2)
    assert "does not exist" in rdq("task", "cancel", "--queue", "mials", exits=4).stderr
    assert live(db) == 1


def test_a_dead_letter_is_sent_elsewhere(rdq: Rdq, dead: Dead, db: Connection) -> None:
    first, *_ = dead.letters(3)
    db.execute("select rdq.create_queue('slow')")
    rdq("dlq", "redrive", first, "--to-queue", "slow", "--to-handler", "other", "--to-version", "2")
    rdq("dlq", "redrive", "--queue", "payments", "--to-queue", "slow", "--yes")
    rows = db.execute(
        "select queue, handler, handler_version, status from rdq.tasks order by 2"
    ).fetchall()
    assert {(queue, status) for queue, _, _, status in rows} == {("slow", "PENDING")}
    assert [(h, v) for _, h, v, _ in rows if v] == [("other", "2")]


def test_the_audit_of_a_queue_that_never_was_is_no_empty_one(rdq: Rdq, dead: Dead) -> None:
    dead.letters(1)
    rdq("audit", "--queue", "payments")
    refused = rdq("audit", "--queue", "paymnts", exits=4)
    assert "'paymnts' does not exist" in refused.stderr
    for command in ("list", "groups"):
        assert "does not exist" in rdq("dlq", command, "--queue", "paymnts", exits=4).stderr
