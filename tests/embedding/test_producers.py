"""A submit from Python is part of the caller's transaction, on any connection of psycopg."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import class_row, dict_row, scalar_row
from psycopg.types.json import Jsonb

from rdq_runner import (
    NewTask,
    Permanent,
    submit,
    submit_async,
    submit_many,
    submit_many_async,
)
from rdq_runner.producers import Payload
from tests.conftest import Connect
from tests.embedding.conftest import Tasks

JSON = "application/json"


@pytest.mark.parametrize(
    ("payload", "stored", "content_type"),
    [
        (b"\x00\xff", b"\x00\xff", "application/octet-stream"),
        (bytearray(b"ab"), b"ab", "application/octet-stream"),
        (memoryview(b"ab"), b"ab", "application/octet-stream"),
        (b"", b"", "application/octet-stream"),
        ("Grüße\0", "Grüße\0".encode(), "text/plain; charset=utf-8"),
        ({"order": 42, "name": "é"}, '{"order": 42, "name": "é"}'.encode(), JSON),
        ({"bad": "\ud800"}, b'{"bad": "\\ud800"}', JSON),
        ([1, "two", None], b'[1, "two", null]', JSON),
        ((1, 2), b"[1, 2]", JSON),
        (4.5, b"4.5", JSON),
        (True, b"true", JSON),
    ],
)
def test_a_payload_is_kept_with_the_content_type_that_it_has(
    db: psycopg.Connection, tasks: Tasks, payload: Payload, stored: bytes, content_type: str
) -> None:
    [many] = submit_many(db, "payments", [{"handler": "charge", "payload": payload}])
    for task_id in (submit(db, "payments", "charge", payload), many):
        task = tasks.one(task_id)
        assert (task.payload, task.content_type) == (stored, content_type)


def test_every_option_arrives(db: psycopg.Connection, tasks: Tasks) -> None:
    moment = datetime(2100, 1, 2, 3, 4, 5, tzinfo=UTC)
    options: dict[str, Any] = {
        "headers": {"traceparent": "00-ab-cd-01", "grüße": "\u2713"},
        "run_at": moment,
        "give_up_at": moment + timedelta(days=1),
        "max_attempts": 3,
        "handler_version": "v2-é",
        "content_type": "application/xml",
    }
    one, two = uuid4(), uuid4()
    assert submit(db, "payments", "charge", "<a/>", task_id=one, dedupe_key="a", **options) == one
    new: Any = {"handler": "charge", "payload": "<a/>", "task_id": str(two), **options}
    assert submit_many(db, "payments", [new | {"dedupe_key": "b"}]) == [two]
    for task_id, key in ((one, "a"), (two, "b")):
        task = tasks.one(task_id)
        assert (task.queue, task.handler, task.payload) == ("payments", "charge", b"<a/>")
        assert task.headers == options["headers"]
        assert task.give_up_at == options["give_up_at"]
        assert (task.max_attempts, task.handler_version) == (3, "v2-é")
        assert (task.content_type, task.dedupe_key) == ("application/xml", key)
    due = {row.due_at for row in tasks.rows("select due_at from rdq.due")}
    assert due == {moment}


class Anything:
    """A row of any columns."""

    def __init__(self, **columns: object) -> None:
        self.columns = columns


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("threshold", [None, 0])
@pytest.mark.parametrize(
    "options",
    [
        {"row_factory": dict_row},
        {"row_factory": scalar_row},
        {"row_factory": class_row(Anything)},
        {"cursor_factory": psycopg.ClientCursor},
        {"cursor_factory": psycopg.RawCursor},
        {"client_encoding": "LATIN1"},
    ],
    ids=["dict rows", "scalar rows", "rows of a class", "client cursor", "raw cursor", "LATIN1"],
)
def test_a_submit_works_on_any_connection(
    connect: Connect, tasks: Tasks, autocommit: bool, threshold: int | None, options: Any
) -> None:
    connection = connect(autocommit=autocommit, prepare_threshold=threshold, **options)
    for _ in range(3):
        submit(
            connection, "payments", "charge", {"sign": "✓"}, headers={"x": "✓"}, error=OSError("✓")
        )
        submit_many(connection, "payments", [{"handler": "charge", "payload": "✓"}])
    assert len(tasks.all()) == (6 if autocommit else 0)
    connection.rollback()
    assert len(tasks.all()) == (6 if autocommit else 0)


def test_a_connection_that_loads_uuids_as_text_gets_uuids(connect: Connect, tasks: Tasks) -> None:
    connection = connect()
    connection.adapters.register_loader("uuid", psycopg.types.string.TextLoader)
    assert isinstance(submit(connection, "payments", "charge", "x"), UUID)


def test_a_submit_is_there_when_the_callers_transaction_is(connect: Connect, tasks: Tasks) -> None:
    connection = connect(autocommit=False)
    connection.execute("create table orders (id int)")
    connection.commit()
    connection.execute("insert into orders values (1)")
    submit(connection, "payments", "charge", {"order": 1})
    connection.rollback()
    assert tasks.all() == tasks.rows("select * from orders") == []
    connection.execute("insert into orders values (1)")
    submit(connection, "payments", "charge", {"order": 1})
    assert tasks.all() == []
    connection.commit()
    assert len(tasks.all()) == len(tasks.rows("select * from orders")) == 1


def test_a_refusal_says_what_is_wrong_and_leaves_a_savepoint_usable(
    connect: Connect, tasks: Tasks
) -> None:
    connection = connect(autocommit=False)
    submit(connection, "payments", "charge", "x")
    with pytest.raises(psycopg.Error, match="no-such-queue") as refusal, connection.transaction():
        submit(connection, "no-such-queue", "charge", "x")
    assert refusal.value.sqlstate == "RD001"
    connection.commit()
    assert len(tasks.all()) == 1


def test_a_task_id_again_gives_the_same_task(db: psycopg.Connection, tasks: Tasks) -> None:
    task_id = uuid4()
    ids = {submit(db, "payments", "charge", payload, task_id=task_id) for payload in ("a", "b")}
    assert ids == {task_id}
    assert [task.payload for task in tasks.all()] == [b"a"]


def fail() -> Exception:
    """Return an exception that was raised."""
    try:
        raise ConnectionRefusedError(111, "refused\0 \ud800 by the card's bank")
    except ConnectionRefusedError as error:
        return error


def test_an_exception_becomes_attempt_1_with_its_stack(
    db: psycopg.Connection, tasks: Tasks
) -> None:
    [many] = submit_many(db, "payments", [{"handler": "charge", "payload": "x", "error": fail()}])
    for task_id in (submit(db, "payments", "charge", "x", error=fail()), many):
        [attempt] = tasks.history(task_id)
        assert (attempt.outcome, attempt.error_class) == ("FAILED", "TRANSIENT")
        assert attempt.error_type == "ConnectionRefusedError"
        assert attempt.message == "[Errno 111] refused\ufffd \ufffd by the card's bank"
        assert "in fail\n    raise ConnectionRefusedError" in attempt.stack
        assert tasks.one(task_id).status == "PENDING"


def test_a_permanent_failure_is_a_dead_letter_at_once(db: psycopg.Connection, tasks: Tasks) -> None:
    task = tasks.one(submit(db, "payments", "charge", "x", error=Permanent("card is gone")))
    assert (task.status, task.dead_reason) == ("DEAD", "PERMANENT")


def test_a_failure_as_an_object_is_made_storable(db: psycopg.Connection, tasks: Tasks) -> None:
    at = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    error = {
        "type": "Upstream\0",
        "message": "m" * 5000,
        "stack": "line\n" * 1000 + "\ud800",
        "class": "AMBIGUOUS",
        "detail": {"body": "\0", "number": float("nan")},
        "at": at,
    }
    [attempt] = tasks.history(submit(db, "payments", "charge", "x", error=error))
    assert attempt.error_type == "Upstream\ufffd"
    assert len(attempt.message) <= 4096
    assert len(attempt.stack) > 5000
    assert attempt.detail == {"body": "\ufffd", "number": "nan"}
    assert attempt.finished_at == at


def test_ids_come_in_the_order_of_the_tasks(db: psycopg.Connection, tasks: Tasks) -> None:
    ids = submit_many(
        db, "payments", ({"handler": "charge", "payload": number} for number in range(100))
    )
    assert [json.loads(tasks.one(task_id).payload) for task_id in ids[:3]] == [0, 1, 2]
    assert len(set(ids)) == 100
    assert submit_many(db, "payments", []) == []


def test_submit_many_is_all_or_nothing_and_names_the_wrong_one(
    db: psycopg.Connection, tasks: Tasks
) -> None:
    good: NewTask = {"handler": "charge", "payload": "x"}
    with pytest.raises(psycopg.Error, match=r"tasks\[1\].*handler"):
        submit_many(db, "payments", [good, {"handler": "Not A Name", "payload": "x"}])
    with pytest.raises(TypeError, match=r"tasks\[2\].*not JSON serializable"):
        submit_many(db, "payments", [good, good, {"handler": "h", "payload": {"a": {1}}}])
    with pytest.raises(TypeError, match=r"tasks\[0\].*'dedupe'"):
        submit_many(db, "payments", [{**good, "dedupe": "x"}])  # type: ignore[typeddict-unknown-key]
    assert tasks.all() == []


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda db: submit(db, "payments", "h", cast(Any, None)), TypeError, "payload is None"),
        (lambda db: submit(db, "payments", "h", {"a": {1}}), TypeError, "not JSON serializable"),
        (lambda db: submit(db, "payments", "h", float("nan")), ValueError, "not JSON compliant"),
        (lambda db: submit(db, "payments", "h", "\ud800"), ValueError, "surrogates"),
        (
            lambda db: submit(db, "payments", "h", "x", run_at=datetime(2100, 1, 1)),
            ValueError,
            "run_at has no time zone",
        ),
        (lambda db: cast(Any, submit)(db, "payments", "h", "x", runat=1), TypeError, "'runat'"),
        (
            lambda _: submit(cast(Any, "dsn"), "payments", "h", "x"),
            TypeError,
            "no psycopg.Connection",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_before_the_database_sees_it(
    connect: Connect, tasks: Tasks, attempt: Callable[[Any], Any], error: Any, message: str
) -> None:
    connection = connect(autocommit=False)
    with pytest.raises(error, match=message):
        attempt(connection)
    submit(connection, "payments", "charge", "the transaction is as it was")
    connection.commit()
    assert len(tasks.all()) == 1


def test_an_asynchronous_connection_does_the_same(database: str, tasks: Tasks) -> None:
    async def produce() -> list[UUID]:
        connection = await psycopg.AsyncConnection.connect(database, row_factory=dict_row)
        async with connection:
            one = await submit_async(
                connection, "payments", "charge", {"order": 1}, headers={"a": "b"}
            )
            two = await submit_many_async(
                connection, "mails", [{"handler": "send", "payload": b"2", "error": fail()}]
            )
            assert tasks.all() == []
        with pytest.raises(TypeError, match=r"no psycopg\.Connection but a AsyncConnection"):
            submit(connection, "payments", "charge", "x")  # type: ignore[arg-type]
        return [one, *two]

    ids = asyncio.run(produce())
    assert [task.id for task in tasks.all()] == ids
    assert [task.payload for task in tasks.all()] == [b'{"order": 1}', b"2"]
    assert len(tasks.history(ids[1])) == 1


def test_a_role_that_may_only_produce_is_enough(
    connect: Connect, db: psycopg.Connection, tasks: Tasks
) -> None:
    role = f"rdq_producer_{uuid4().hex}"
    db.execute(f"create role {role}".encode())
    try:
        db.execute("select rdq.grant_access(%s, 'producer', array['payments'])", [role])
        db.execute("select rdq.alter_queue('payments', %s)", [Jsonb({"max_attempts": 2})])
        connection = connect(options=f"-c role={role}")
        submit(connection, "payments", "charge", "x")
        with pytest.raises(psycopg.Error, match="not permitted"):
            submit(connection, "mails", "send", "x")
    finally:
        db.execute(f"drop owned by {role}; drop role {role}".encode())
    assert len(tasks.all()) == 1
