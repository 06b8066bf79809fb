"""What a receiver gets: the payload as it is, and what it needs to know of it."""

import threading
from uuid import UUID

import pytest

from rdq_runner import Handlers, Task
from tests.callbacks.conftest import Callbacks, Receive, Start
from tests.callbacks.receivers import Request, answer, in_turn
from tests.waiting import wait_until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_request_is_the_payload_with_the_tasks_name_on_it(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    receiver = receive(answer(204))
    queue.set_endpoint(
        f"{receiver.url}?a=%2F%7e&b=c+d%20e",
        headers={"Authorization": "Bearer x", "User-Agent": "shop", "X-Own": "1"},
    )
    start()
    task = queue.send(
        '{"b": 1,  "a": 2, "a": 3}', TraceParent=TRACE, tracestate="v=1", secret="not for others"
    )
    queue.wait_for("SUCCEEDED", task)
    [request] = receiver.requests
    assert request.line == "POST /hook?a=%2F%7e&b=c+d%20e HTTP/1.1"
    assert request.body == b'{"b": 1,  "a": 2, "a": 3}'
    timestamp = request.fields["webhook-timestamp"]
    assert int(queue.last(task).started_at.timestamp()) <= int(timestamp) <= request.at
    assert {name.lower(): value for name, value in request.fields.items()} == {
        "host": f"127.0.0.1:{receiver.port}",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
        "content-length": "25",
        "content-type": "text/plain; charset=utf-8",
        "authorization": "Bearer x",
        "user-agent": "shop",
        "x-own": "1",
        "webhook-id": str(task),
        "webhook-timestamp": timestamp,
        "idempotency-key": str(task),
        "rdq-task-id": str(task),
        "rdq-queue": "q",
        "rdq-handler": "hook",
        "rdq-attempt": "1",
        "traceparent": TRACE,
        "tracestate": "v=1",
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("payload", [b"", b"\0\xff\xfe\r\n\r\n", b"\x80" * 1_000_000])
def test_bytes_arrive_as_they_are(
    queue: Callbacks, start: Start, receive: Receive, payload: bytes
) -> None:
    receiver = receive(answer(200))
    queue.set_endpoint(receiver.url)
    start()
    queue.wait_for("SUCCEEDED", queue.send(payload))
    [request] = receiver.requests
    assert request.body == payload
    assert request.fields["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "trace",
    [
        {"traceparent": "x\r\nEvil: 1"},
        {"traceparent": TRACE + "\nEvil: 1"},
        {"traceparent": "", "tracestate": "v=1"},
        {"traceparent": TRACE, "tracestate": "a=b\r\nEvil: 1"},
    ],
)
def test_what_is_no_trace_context_is_not_forwarded(
    queue: Callbacks, start: Start, receive: Receive, trace: dict[str, str]
) -> None:
    receiver = receive(answer(200))
    queue.set_endpoint(receiver.url)
    start()
    queue.wait_for("SUCCEEDED", queue.send(**trace))
    [request] = receiver.requests
    assert "evil" not in str(request.fields).lower()
    assert "tracestate" not in request.fields
    assert request.fields["traceparent"] == (TRACE if trace["traceparent"] == TRACE else None)


def test_neither_cookies_nor_proxies_nor_passwords_of_the_environment_are_used(
    queue: Callbacks,
    start: Start,
    receive: Receive,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login user password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    receiver = receive(in_turn(answer(503, "Set-Cookie: a=b"), answer(200)))
    queue.set_endpoint(receiver.url)
    start()
    queue.wait_for("SUCCEEDED", queue.send())
    assert len(receiver.requests) == 2
    for request in receiver.requests:
        assert "cookie" not in request.fields
        assert "authorization" not in request.fields


def test_callbacks_run_at_once_and_not_one_by_one(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    together = threading.Barrier(8)

    def behave(request: Request, connection: object) -> None:
        together.wait(20)
        answer(200)(request, connection)  # type: ignore[arg-type]

    receiver = receive(behave)
    queue.set_endpoint(receiver.url)
    tasks = [queue.send() for _ in range(8)]
    start(concurrency=8)
    queue.wait_for("SUCCEEDED", *tasks)


def test_an_endpoint_that_is_registered_while_a_runner_runs_is_called_at_once(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    receiver = receive(answer(200))
    handlers = Handlers()
    handlers.handler("ok")(lambda task: None)
    start(handlers=handlers)
    for _ in range(2):
        # The second one is claimed when what the runner reads at its start has been read.
        queue.wait_for("SUCCEEDED", queue.send(handler="ok"))
    queue.set_endpoint(receiver.url)
    task = queue.send()
    # One that had been handed back as unknown would come again after a minute.
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["SUCCEEDED"]


def test_an_endpoint_goes_before_a_function_of_the_same_name(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    called: list[UUID] = []
    handlers = Handlers()

    @handlers.handler("hook")
    def hook(task: Task) -> None:
        called.append(task.id)

    receiver = receive(answer(200))
    queue.set_endpoint(receiver.url)
    start(handlers=handlers)
    queue.wait_for("SUCCEEDED", queue.send())
    assert not called
    queue.db.execute("select rdq.drop_endpoint('q', 'hook')")

    def is_the_functions() -> bool:
        queue.wait_for("SUCCEEDED", queue.send())
        return bool(called)

    wait_until(is_the_functions)
    assert len(receiver.requests) >= 1


def test_a_change_of_an_endpoint_is_noticed_within_seconds(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    before, after = receive(answer(200)), receive(answer(200))
    queue.set_endpoint(before.url)
    start()
    queue.wait_for("SUCCEEDED", queue.send())
    queue.set_endpoint(after.url)

    def is_called() -> bool:
        queue.wait_for("SUCCEEDED", queue.send())
        return bool(after.requests)

    wait_until(is_called)


def test_no_secret_reaches_a_log(
    queue: Callbacks,
    start: Start,
    receive: Receive,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("HOOK_SECRET", "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg==")
    receiver = receive(answer(400, body=b"hunter2-body"))
    queue.set_endpoint(
        f"{receiver.url}?token=hunter2-url",
        headers={"Authorization": "hunter2-header"},
        secret="env:HOOK_SECRET",
    )
    start()
    queue.wait_for("DEAD", queue.send('"hunter2-payload"', note="hunter2-note"))
    wait_until(lambda: "attempt ended" in [record.message for record in caplog.records])
    logged = str([vars(record) for record in caplog.records])
    assert "hunter2" not in logged
    assert "aHVudGVyMg" not in logged
