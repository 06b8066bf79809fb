"""Which class an exception has, and that describing one never fails."""

import http.client
import json
import socket
from collections.abc import Callable
from datetime import timedelta
from urllib.error import HTTPError, URLError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdq_runner import (
    Ambiguous,
    Cancelled,
    MalformedPayload,
    Permanent,
    Task,
    Transient,
    attempts,
    storable,
)
from rdq_runner.handlers import Registration
from rdq_runner.outcomes import (
    ErrorClass,
    Failure,
    Outcome,
    Release,
    Success,
    classify,
    describe,
)
from tests.runner.ordeals import registered
from tests.runner.test_tasks import a_task


class CardRefusedError(Permanent):
    pass


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (Transient("busy"), "TRANSIENT"),
        (Permanent("refused"), "PERMANENT"),
        (Ambiguous("sent"), "AMBIGUOUS"),
        (CardRefusedError(), "PERMANENT"),
        (MalformedPayload(), "PERMANENT"),
        (ConnectionRefusedError(111, "Connection refused"), "TRANSIENT"),
        (socket.gaierror(-2, "Name or service not known"), "TRANSIENT"),
        (TimeoutError("timed out"), "TRANSIENT"),
        (BrokenPipeError(32, "Broken pipe"), "AMBIGUOUS"),
        (ConnectionResetError(104, "Connection reset by peer"), "AMBIGUOUS"),
        (ConnectionAbortedError(), "AMBIGUOUS"),
        (http.client.RemoteDisconnected("closed"), "AMBIGUOUS"),
        (URLError(ConnectionRefusedError()), "TRANSIENT"),
        (URLError(socket.gaierror()), "TRANSIENT"),
        (URLError(ConnectionResetError()), "AMBIGUOUS"),
        # https://github.com/temporalio/sdk-python/issues/1020, of its leaves the strictest
        (ExceptionGroup("g", [Transient(), Permanent()]), "PERMANENT"),
        (ExceptionGroup("g", [ConnectionRefusedError(), TimeoutError()]), "TRANSIENT"),
        (ExceptionGroup("g", [TimeoutError(), ExceptionGroup("h", [Ambiguous()])]), "AMBIGUOUS"),
        (ExceptionGroup("g", [Transient(), ValueError()]), None),
        (ExceptionGroup("g", [Permanent(), ValueError()]), "PERMANENT"),
        (ExceptionGroup("g", [Ambiguous(), ValueError()]), "AMBIGUOUS"),
        (BaseExceptionGroup("g", [KeyboardInterrupt(), Transient()]), None),
        (URLError("unknown url type"), None),
        (HTTPError("http://localhost", 503, "busy", http.client.HTTPMessage(), None), None),
        (json.JSONDecodeError("Expecting value", "", 0), None),
        (ValueError(), None),
        (OSError(), None),
        (MemoryError(), None),
        (Cancelled(), None),
    ],
    ids=repr,
)
def test_an_exception_has_the_class_of_its_meaning(
    error: BaseException, error_class: str | None
) -> None:
    assert classify(error) == error_class


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        (2, 2.0),
        (1.5, 1.5),
        (timedelta(minutes=2), 120.0),
        (-5, 0.0),
        (float("inf"), 1e9),
        (10**400, 1e9),
        (timedelta.max, 1e9),
        (float("nan"), None),
        ("soon", None),
        (None, None),
    ],
    ids=type,
)
def test_retry_after_is_a_number_of_seconds_or_nothing(
    retry_after: float | None, seconds: float | None
) -> None:
    assert describe(Transient("busy", retry_after=retry_after)).retry_after == seconds


def test_an_error_type_is_the_name_that_people_import() -> None:
    assert describe(ValueError()).type == "ValueError"
    assert describe(Permanent()).type == "rdq_runner.Permanent"
    assert describe(json.JSONDecodeError("", "", 0)).type == "json.decoder.JSONDecodeError"
    assert describe(CardRefusedError()).type == f"{__name__}.CardRefusedError"


def test_a_stack_shows_the_line_that_raised_and_its_cause() -> None:
    def charge() -> None:
        try:
            raise ConnectionRefusedError("no answer")
        except ConnectionRefusedError as error:
            raise Permanent("not charged") from error

    outcome = attempt(lambda task: charge(), a_task())
    assert isinstance(outcome, Failure)
    assert outcome.stack is not None
    assert 'raise Permanent("not charged") from error' in outcome.stack
    assert "ConnectionRefusedError: no answer" in outcome.stack


def attempt(function: Callable[[Task], object], task: Task) -> Outcome:
    """Run a function as a handler without options."""
    handler = Registration(name="charge", function=function, is_async=False)
    return attempts.attempt(handler, task)


def _raising(error: type[BaseException]) -> Callable[..., str]:
    def fail(*_: object) -> str:
        raise error("out of its own code")

    return fail


@given(
    st.sampled_from(["__str__", "__repr__", "__class__", "detail", "retry_after", "__cause__"]),
    st.sampled_from([ValueError, RecursionError, MemoryError, KeyboardInterrupt, SystemExit]),
)
def test_an_exception_that_raises_when_it_is_read_is_described_all_the_same(
    member: str, error: type[BaseException]
) -> None:
    method = _raising(error)
    body = {"__init__": lambda self: None, member: method if "r__" in member else property(method)}
    failure = describe(type("Broken", (Permanent,), body)())
    assert failure.type.endswith("Broken")
    assert failure.error_class == "PERMANENT"


@given(st.text(st.characters(exclude_categories=())))
def test_every_field_of_a_failure_is_storable(value: str) -> None:
    kind = type("Broken", (Permanent,), {"__module__": value})
    outcome = attempt(lambda task: _raise(kind(value, detail={value: value})), a_task())
    assert isinstance(outcome, Failure)
    written = json.dumps(outcome.document(), ensure_ascii=False)
    assert "\\u0000" not in written
    written.encode()


def test_a_huge_message_is_cut_everywhere() -> None:
    failure = describe(ValueError("x" * 10_000_000))
    assert len(failure.message) <= storable.MESSAGE_BYTES
    assert failure.stack is not None
    assert len(failure.stack) <= storable.STACK_BYTES


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_is_no_exception_is_a_failure_too(error: BaseException) -> None:
    outcome = attempt(lambda task: _raise(error), a_task())
    assert isinstance(outcome, Failure)
    assert outcome.type == type(error).__name__


def test_a_handler_that_returns_has_succeeded() -> None:
    assert attempt(lambda task: None, a_task()) == Success()


def test_a_handler_that_returns_what_nobody_runs_has_failed() -> None:
    async def charge() -> None: ...

    coroutine = charge()
    outcome = attempt(lambda task: coroutine, a_task())
    coroutine.close()
    assert isinstance(outcome, Failure)
    assert outcome.message == "the handler returned a coroutine, which nobody runs"


def test_a_handler_hands_back_only_what_was_cancelled() -> None:
    task = a_task()
    assert isinstance(attempt(lambda task: _raise(Cancelled()), task), Failure)
    task.cancellation.set()
    assert isinstance(attempt(lambda task: _raise(Cancelled()), task), Release)
    assert isinstance(attempt(lambda task: _raise(ValueError()), task), Failure)


def _raise(error: BaseException) -> None:
    raise error


class OutOfStock(LookupError): ...


class SoldOut(OutOfStock): ...


class Refused(Transient): ...


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SoldOut(), "PERMANENT"),
        (OutOfStock(), "TRANSIENT"),
        (LookupError(), None),
        (ConnectionRefusedError(), "AMBIGUOUS"),
        (URLError(ConnectionRefusedError()), "AMBIGUOUS"),
        (Transient(), "TRANSIENT"),
        (Refused(), "PERMANENT"),
    ],
    ids=repr,
)
def test_the_nearest_class_of_a_handlers_own_mapping_counts(
    error: BaseException, expected: str | None
) -> None:
    errors: dict[type[BaseException], ErrorClass] = {
        OutOfStock: "TRANSIENT",
        SoldOut: "PERMANENT",
        OSError: "AMBIGUOUS",
        Refused: "PERMANENT",
    }
    assert classify(error, errors) == expected


def test_of_a_group_the_longest_wait_and_the_first_detail_count() -> None:
    group = ExceptionGroup(
        "g",
        [
            ValueError("x"),
            Transient("a", retry_after=60),
            ExceptionGroup("h", [Transient("b", retry_after=timedelta(hours=2), detail={"b": 1})]),
            Transient("c", retry_after=1, detail={"c": 1}),
        ],
    )
    failure = describe(group)
    assert (failure.type, failure.retry_after, failure.detail) == (
        "ExceptionGroup",
        7200.0,
        {"b": 1},
    )


def test_a_mapping_may_name_a_leaf_or_the_group() -> None:
    group = ExceptionGroup("g", [ValueError(), Transient()])
    assert classify(group, {ValueError: "TRANSIENT"}) == "TRANSIENT"
    assert classify(group, {ExceptionGroup: "PERMANENT"}) == "PERMANENT"


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ([Cancelled()], Release),
        ([Cancelled(), ExceptionGroup("h", [Cancelled()])], Release),
        ([Cancelled(), ValueError()], Failure),
    ],
)
def test_a_group_is_a_release_where_all_of_it_stopped_because_it_was_told_to(
    members: list[Exception], outcome: type[Outcome]
) -> None:
    def act(task: Task) -> None:
        raise ExceptionGroup("g", members)

    handler = registered(act).registration("act")
    task = a_task()
    task.cancellation.set()
    assert type(attempts.attempt(handler, task)) is outcome
    assert type(attempts.attempt(handler, a_task())) is Failure
