"""What holds back the cleaning up of tickets: old transactions, here, prepared and on a standby."""

import psycopg
import pytest

from rdq_runner.migrate import migrate
from tests.conftest import Connect, Connection
from tests.doctor.conftest import HELD_XIDS, advice, found, impatient, spend_xids
from tests.waiting import wait_until
from tools.postgres import Server

OPENINGS = {
    "a write": ["begin", "select pg_current_xact_id()"],
    "a snapshot": ["begin isolation level repeatable read", "select 1"],
    "a cursor": ["begin", "declare c cursor for select * from pg_class"],
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
def test_a_transaction_that_stays_open_is_found_until_it_ends(
    db: Connection, connect: Connect, opening: list[str]
) -> None:
    impatient(db)
    session = connect(application_name="a report\x07\nof the month")
    for statement in opening:
        session.execute(statement)
    subject = f"session {session.info.backend_pid}"
    assert found(db).keys() == {subject}
    assert found(db)[subject].startswith("warning: a transaction of a report")
    assert " has been open for 0 seconds: what was removed since then" in found(db)[subject]
    assert "report" not in advice(db, subject)
    db.execute(advice(db, subject).encode())
    wait_until(lambda: found(db) == {})
    session.close()


def test_a_transaction_that_holds_nothing_back_is_not_found(
    db: Connection, connect: Connect, server: Connection, server_dsn: str
) -> None:
    impatient(db)
    idle = connect(autocommit=False)
    idle.execute("select 1")
    with psycopg.connect(server_dsn) as elsewhere:
        elsewhere.execute("select pg_current_xact_id()")
        assert found(db) == {}
    db.execute("begin isolation level repeatable read")
    assert found(db) == {}, "one's own session"


def test_a_transaction_of_a_moment_ago_is_not_found(db: Connection, connect: Connect) -> None:
    connect(autocommit=False).execute("select pg_current_xact_id()")
    assert found(db) == {}


def test_a_role_that_may_not_see_a_session_is_told_how_old_its_snapshot_is(
    db: Connection, connect: Connect
) -> None:
    impatient(db)
    session = connect()
    session.execute("begin isolation level repeatable read")
    session.execute("select 1")
    spend_xids(db)
    # The owner is nobody special, and may see as little.
    db.execute("set role rdq_owner")
    words = found(db)[f"session {session.info.backend_pid}"]
    assert words.startswith("warning: a transaction")
    assert " holds a snapshot that is " in words


def test_what_the_owner_may_see_is_told_to_those_who_may_not(primary: Server) -> None:
    with psycopg.connect(primary.dsn(), autocommit=True) as db:
        db.execute("create role owner login")
        db.execute("create role looker login")
        db.execute("create database owned owner owner")
    migrate(primary.dsn(dbname="owned", user="owner"))
    with (
        psycopg.connect(primary.dsn(dbname="owned"), autocommit=True) as db,
        psycopg.connect(primary.dsn(dbname="owned", user="owner"), autocommit=True) as old,
        psycopg.connect(primary.dsn(dbname="owned", user="looker"), autocommit=True) as looker,
    ):
        impatient(db)
        db.execute("select rdq.grant_access('looker', 'viewer')")
        old.execute("begin isolation level repeatable read")
        old.execute("select 1")
        [(hidden,)] = looker.execute(
            "select xact_start from pg_stat_activity where pid = %s", [old.info.backend_pid]
        )
        assert hidden is None
        words = found(looker)[f"session {old.info.backend_pid}"]
        assert words.startswith("warning: a transaction has been open for 0 seconds")


def test_a_prepared_transaction_is_found_until_it_ends(primary: Server) -> None:
    with (
        psycopg.connect(primary.dsn(), autocommit=True) as db,
        psycopg.connect(primary.dsn(dbname="template1"), autocommit=True) as elsewhere,
    ):
        for session in (db, elsewhere):
            session.execute("begin")
            session.execute("select pg_current_xact_id()")
            session.execute(f"prepare transaction 'it''s {session.info.dbname}'".encode())
        assert found(db) == {}, "not for five minutes"
        impatient(db)
        subject = "prepared transaction it's postgres"
        assert found(db).keys() == {subject}
        assert "has waited for its end for 0 seconds" in found(db)[subject]
        db.execute(advice(db, subject).encode())
        assert found(db) == {}


def test_a_standby_and_its_slot_hold_snapshots_and_the_doctor_works_there(
    primary: Server, standby: Server
) -> None:
    with (
        psycopg.connect(primary.dsn(), autocommit=True) as db,
        psycopg.connect(standby.dsn(), autocommit=True) as reader,
    ):
        assert found(reader) == {
            "database": "error: this server is a standby: it only reads, so nothing can be"
            " submitted, claimed or redriven here"
        }
        impatient(db)
        reader.execute("begin isolation level repeatable read")
        reader.execute("select 1")
        spend_xids(db, 2 * HELD_XIDS)

        [(pid,)] = db.execute("select pid from pg_stat_replication").fetchall()
        wait_until(lambda: found(db).keys() == {f"session {pid}"})
        words = found(db)[f"session {pid}"]
        assert words.startswith("warning: a standby of walreceiver holds a snapshot that is ")
        assert "on that standby" in advice(db, f"session {pid}")

        db.execute("select pg_create_physical_replication_slot('its_slot')")
        with psycopg.connect(standby.dsn(), autocommit=True) as admin:
            admin.execute("alter system set primary_slot_name = 'its_slot'")
            admin.execute("select pg_reload_conf()")
        subject = "replication slot its_slot"
        wait_until(lambda: found(db).keys() == {subject})
        assert found(db)[subject].startswith("warning: it is in use, and holds a snapshot that is ")
        assert "on its standby" in advice(db, subject)

        standby.stop("immediate")
        reader.close()
        wait_until(lambda: "nobody uses it" in found(db)[subject])
        db.execute(advice(db, subject).encode())
        assert found(db) == {}
