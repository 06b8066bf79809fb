"""What fails in a consumer is done, or is a task, or the consumer hears that it is neither."""

import asyncio
import logging
import re
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from rdq_runner import (
    Ambiguous,
    Handed,
    Permanent,
    Transient,
    guard,
    guard_async,
    guarded,
    guarded_async,
)
from tests.conftest import Connect
from tests.embedding.conftest import Tasks

NOWHERE = make_conninfo(host="127.0.0.1", port=1, connect_timeout=2)
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}

Opener = Callable[[], AbstractContextManager[psycopg.Connection[Any]]]


@pytest.fixture
def opener(database: str, tasks: Tasks) -> Opener:
    return lambda: psycopg.connect(database)


def refused() -> None:
    """Fail as a call to a service that is down."""
    raise ConnectionRefusedError(111, "Connection refused")


def test_a_block_that_succeeds_is_no_task(opener: Opener, tasks: Tasks) -> None:
    with guard(opener, "payments", "charge", payload="x") as state:
        pass
    assert state.handed is None
    assert tasks.all() == []


def test_the_failure_of_a_block_becomes_a_task_with_its_error_and_stack(
    opener: Opener, tasks: Tasks
) -> None:
    options: Any = {"headers": TRACE, "dedupe_key": "order-1"}
    with guard(opener, "payments", "charge", {"order": 1}, **options) as state:
        refused()
    assert state.handed
    assert isinstance(state.handed.error, ConnectionRefusedError)
    [task] = tasks.all()
    assert task.id == state.handed.task_id
    assert (task.status, task.handler, task.payload) == ("PENDING", "charge", b'{"order": 1}')
    assert (task.headers, task.dedupe_key) == (TRACE, "order-1")
    [attempt] = tasks.history(task.id)
    assert (attempt.outcome, attempt.error_class) == ("FAILED", "TRANSIENT")
    assert attempt.message == "[Errno 111] Connection refused"
    assert "in refused\n    raise ConnectionRefusedError" in attempt.stack


def test_a_block_may_let_its_exception_through_after_the_hand_over(
    opener: Opener, tasks: Tasks
) -> None:
    with (
        pytest.raises(ConnectionRefusedError),
        guard(opener, "payments", "charge", "x", reraise=True),
    ):
        refused()
    assert len(tasks.all()) == 1


def test_the_payload_is_what_it_was_before_the_block(opener: Opener, tasks: Tasks) -> None:
    message = {"order": 1}
    with guard(opener, "payments", "charge", payload=message):
        message.clear()
        refused()
    assert [task.payload for task in tasks.all()] == [b'{"order": 1}']


def test_a_payload_that_cannot_be_handed_over_is_refused_before_the_block(opener: Opener) -> None:
    ran = []
    with pytest.raises(TypeError, match="not JSON"), guard(opener, "p", "h", payload={"a": {1}}):
        ran.append(True)
    with pytest.raises(TypeError, match="'retries'"):
        guard(opener, "p", "h", "x", retries=1).__enter__()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"connection is a str: give a psycopg\.Connection"):
        guard("dsn", "p", "h", "x").__enter__()  # type: ignore[arg-type]
    assert not ran


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_ends_the_process_is_not_handed_over(
    opener: Opener, tasks: Tasks, kind: type[BaseException]
) -> None:
    with pytest.raises(kind), guard(opener, "payments", "charge", "x"):
        raise kind

    @guarded(opener, "payments", "charge", task=lambda: {"payload": "x"})
    def call() -> None:
        raise kind

    with pytest.raises(kind):
        call()
    assert tasks.all() == []


def test_a_failure_to_hand_over_reaches_the_caller_with_the_failure_before_it() -> None:
    @guarded(lambda: psycopg.connect(NOWHERE), "payments", "charge", task=payload, attempts=1)
    def call(order: int) -> None:
        refused()

    with pytest.raises(psycopg.OperationalError) as by_call:
        call(1)
    with (
        pytest.raises(psycopg.OperationalError) as by_block,
        guard(lambda: psycopg.connect(NOWHERE), "payments", "charge", "x"),
    ):
        refused()
    for raised in (by_call, by_block):
        assert any(isinstance(error, ConnectionRefusedError) for error in chain(raised.value))
        printed = "".join(traceback.format_exception(raised.value))
        assert "in refused" in printed


def chain(error: BaseException) -> list[BaseException]:
    """Return the exceptions that an exception was raised in the handling of."""
    before = error.__context__
    return [] if before is None else [before, *chain(before)]


def test_a_refusal_of_the_hand_over_reaches_the_caller(opener: Opener, tasks: Tasks) -> None:
    with (
        pytest.raises(psycopg.Error, match="no-such-queue") as refusal,
        guard(opener, "no-such-queue", "charge", "x"),
    ):
        refused()
    assert isinstance(refusal.value.__context__, ConnectionRefusedError)


def test_on_the_callers_connection_the_task_is_part_of_its_transaction(
    connect: Connect, tasks: Tasks
) -> None:
    connection = connect(autocommit=False)
    with guard(connection, "payments", "charge", "x"):
        refused()
    assert tasks.all() == []
    connection.rollback()
    with guard(connection, "payments", "charge", "y"), connection.transaction():
        connection.execute("select 1/0")
    connection.commit()
    [task] = tasks.all()
    assert task.payload == b"y"
    assert tasks.history(task.id)[0].error_type == "psycopg.errors.DivisionByZero"


def test_a_transaction_that_the_failure_aborted_says_what_to_do(
    connect: Connect, tasks: Tasks
) -> None:
    connection = connect(autocommit=False)
    with (
        pytest.raises(psycopg.errors.InFailedSqlTransaction) as raised,
        guard(connection, "payments", "charge", "x"),
    ):
        connection.execute("select 1/0")
    assert isinstance(raised.value.__context__, psycopg.errors.DivisionByZero)
    assert "connection.transaction()" in raised.value.__notes__[0]


def test_a_pool_gives_a_connection_for_each_hand_over(database: str, tasks: Tasks) -> None:
    with ConnectionPool(database, min_size=1, max_size=1, open=True) as pool:
        for number in range(3):
            with guard(pool.connection, "payments", "charge", number):
                refused()
    assert len(tasks.all()) == 3


def payload(order: Any) -> Any:
    """Return what a call is as a task."""
    return {"payload": order, "headers": TRACE}


def test_a_call_is_tried_again_and_its_answer_returned(opener: Opener, tasks: Tasks) -> None:
    calls = []

    @guarded(opener, "payments", "charge", task=payload, attempts=3, delay=0.01)
    def charge(order: int) -> str:
        """Charge."""
        calls.append(order)
        if len(calls) < 3:
            refused()
        return "receipt"

    assert charge(7) == "receipt"
    assert calls == [7, 7, 7]
    assert tasks.all() == []
    assert (charge.__name__, charge.__doc__) == ("charge", "Charge.")


def test_a_call_that_goes_on_failing_is_handed_over(opener: Opener, tasks: Tasks) -> None:
    calls = []

    @guarded(opener, "payments", "charge", task=payload, attempts=3, delay=0.01)
    def charge(order: dict[str, int]) -> str:
        calls.append(order.pop("order"))
        order["order"] = 0
        raise Ambiguous(f"no answer, call {len(calls)}")

    handed = charge({"order": 1})
    assert isinstance(handed, Handed)
    assert len(calls) == 3
    [task] = tasks.all()
    assert task.id == handed.task_id
    assert (task.payload, task.headers) == (b'{"order": 1}', TRACE)
    [attempt] = tasks.history(task.id)
    assert (attempt.error_class, attempt.message) == ("AMBIGUOUS", "no answer, call 3")


@pytest.mark.parametrize(
    ("failure", "status"),
    [(Permanent("card is gone"), "DEAD"), (Transient("busy", retry_after=600), "PENDING")],
    ids=["permanent", "asks for a long wait"],
)
def test_what_no_call_in_process_can_mend_is_handed_over_at_once(
    opener: Opener, tasks: Tasks, failure: Exception, status: str
) -> None:
    calls = []

    @guarded(opener, "payments", "charge", task=payload, attempts=5, reraise=True)
    def charge(order: int) -> None:
        calls.append(order)
        raise failure

    with pytest.raises(type(failure)):
        charge(1)
    assert calls == [1]
    assert [task.status for task in tasks.all()] == [status]
    [wait] = tasks.rows("select max(due_at) - max(created_at) as seconds from rdq.due, rdq.task")
    assert status == "DEAD" or 600 <= wait.seconds.total_seconds() < 660


def test_pauses_grow_with_jitter_and_keep_to_their_bound(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("rdq_runner.handover.time.sleep", pauses.append)

    @guarded(opener, "payments", "charge", task=payload, attempts=6, delay=0.5)
    def charge(order: int) -> None:
        raise Transient("busy", retry_after=0.3)

    charge(1)
    bounds = [(0.3, 0.5), (0.5, 1), (1, 2), (1, 2), (1, 2)]
    assert len(pauses) == len(bounds)
    for pause, (least, most) in zip(pauses, bounds, strict=True):
        assert least <= pause <= most


@pytest.mark.parametrize("options", [{"attempts": 0}, {"delay": -1}, {"delay": 3}], ids=str)
def test_budgets_out_of_bounds_are_refused_at_the_decoration(opener: Opener, options: Any) -> None:
    [name] = options
    with pytest.raises(ValueError, match=f"{name} is"):
        guarded(opener, "payments", "charge", task=payload, **options)


def test_a_log_line_tells_of_a_hand_over_and_nothing_that_may_be_secret(
    opener: Opener, tasks: Tasks, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, "rdq_runner"),
        guard(opener, "payments", "charge", "4711", headers={"authorization": "4711"}),
    ):
        raise ValueError("card 4711")
    [record] = caplog.records
    assert record.getMessage() == "failure handed over"
    assert not re.search("4711", str(vars(record)))


def test_asynchronous_consumers_have_the_same(database: str, tasks: Tasks) -> None:
    calls = []

    async def consume() -> None:
        async with AsyncConnectionPool(database, min_size=1, open=False) as pool:

            @guarded_async(pool.connection, "payments", "charge", task=payload, delay=0.01)
            async def charge(order: int) -> str:
                calls.append(order)
                if order:
                    refused()
                return "receipt"

            assert await charge(0) == "receipt"
            assert isinstance(await charge(1), Handed)
            async with guard_async(pool.connection, "mails", "send", "by pool") as state:
                refused()
            assert state.handed
        async with guard_async(
            lambda: psycopg.AsyncConnection.connect(database), "mails", "send", "by coroutine"
        ):
            refused()
        connection = await psycopg.AsyncConnection.connect(database)
        async with connection:
            async with guard_async(connection, "mails", "send", "by connection"):
                refused()
            assert len(tasks.all()) == 3

    asyncio.run(consume())
    assert calls == [0, 1, 1]
    assert [task.payload for task in tasks.all()] == [
        b"1",
        b"by pool",
        b"by coroutine",
        b"by connection",
    ]


def test_a_cancellation_ends_an_asynchronous_consumer(database: str, tasks: Tasks) -> None:
    async def consume() -> None:
        async with guard_async(
            lambda: psycopg.AsyncConnection.connect(database), "payments", "charge", "x"
        ):
            await asyncio.sleep(60)

    async def cancel() -> None:
        consumer = asyncio.create_task(consume())
        await asyncio.sleep(0)
        consumer.cancel()
        await consumer

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert tasks.all() == []


def test_a_function_of_the_wrong_kind_is_refused_at_the_decoration(opener: Opener) -> None:
    async def coroutine() -> None: ...

    with pytest.raises(TypeError, match="guarded_async"):
        guarded(opener, "p", "h", task=payload)(coroutine)
    with pytest.raises(TypeError, match="take guarded"):
        guarded_async(lambda: psycopg.AsyncConnection.connect(), "p", "h", task=payload)(
            refused  # type: ignore[arg-type]
        )
