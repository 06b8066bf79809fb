"""J1 and J5: what an exchange comes to, whatever the other side does."""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.callbacks.conftest import Callbacks, Receive, Start
from tests.callbacks.receivers import (
    Request,
    answer,
    close,
    drip,
    drip_body,
    drip_status,
    flood,
    in_parts,
    raw,
    refusing,
    reset,
    unanswering,
)
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runners trust the authority."""
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


def served_as(authority: trustme.CA, name: str) -> ssl.SSLContext:
    """Return a server's context with a certificate for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_each_status_is_recorded_with_its_class(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    classes = {
        "TRANSIENT": [408, 425, 429, 503],
        "AMBIGUOUS": [500, 501, 502, 504, 599, 600, 999],
        "PERMANENT": [300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 409, 410, 413, 422],
        "SUCCEEDED": [200, 201, 202, 204],
    }

    def behave(request: Request, connection: socket.socket) -> None:
        status = int(request.body)
        body = b"" if status in (204, 304) else b"why"
        answer(status, body=body)(request, connection)

    queue.alter(max_attempts=1)
    receiver = receive(behave)
    queue.set_endpoint(receiver.url)
    start()
    tasks = {
        status: (queue.send(str(status)), name)
        for name, statuses in classes.items()
        for status in statuses
    }
    for status, (task, name) in tasks.items():
        if name == "SUCCEEDED":
            queue.wait_for("SUCCEEDED", task)
            continue
        queue.wait_for("DEAD", task)
        attempt = queue.last(task)
        assert (attempt.error_type, attempt.error_class) == (f"http.{status}", name)
        assert attempt.message == f"HTTP {status} Said So"
        assert attempt.detail["status"] == status
        assert attempt.detail["address"] == f"127.0.0.1:{receiver.port}"
        assert attempt.detail["seconds"] < 5
        reason = "PERMANENT" if name == "PERMANENT" else "EXHAUSTED"
        assert queue.task(task).dead_reason == reason
    assert len(receiver.requests) == len(tasks)


def test_an_endpoint_can_say_what_a_status_means_there(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    def behave(request: Request, connection: socket.socket) -> None:
        answer(int(request.body))(request, connection)

    queue.alter(max_attempts=1)
    queue.set_endpoint(
        receive(behave).url,
        rules=[
            {"status": "409", "class": "SUCCEEDED"},
            {"status": "404", "class": "TRANSIENT"},
            {"status": "2xx", "class": "PERMANENT"},
        ],
    )
    start()
    conflict, missing, fine = queue.send("409"), queue.send("404"), queue.send("200")
    queue.wait_for("SUCCEEDED", conflict)
    queue.wait_for("DEAD", missing, fine)
    assert queue.last(missing).error_class == "TRANSIENT"
    assert queue.last(fine).error_class == "PERMANENT"


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("3600", 3590, 3610),
        ("Sun, 06 Nov 2095 08:49:37 GMT", 86_390, 86_410),
        ("99999999999999999999", 86_390, 86_410),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 290, 310),
        ("0", 290, 310),
        ("-5", 290, 310),
        ("soon", 290, 310),
    ],
)
def test_a_wait_is_what_is_asked_for_but_never_less_than_the_queues_own_nor_more_than_a_day(
    queue: Callbacks, start: Start, receive: Receive, value: str, least: float, most: float
) -> None:
    queue.alter(backoff_base="5 minutes", backoff_cap="5 minutes", jitter=0)
    queue.set_endpoint(receive(answer(429, f"Retry-After: {value}")).url)
    start()
    task = queue.send()
    queue.wait_for_outcomes("FAILED", task)
    attempt = queue.last(task)
    wait = queue.task(task).next_attempt_at - attempt.finished_at
    assert least < wait.total_seconds() < most
    assert attempt.detail["headers"]["retry-after"] == value


@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 1\r\n\r\nabc",
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"Content-Length: x\r\n\r\n",
        b"X: " + b"x" * 9000 + b"\r\n\r\n",
        b"".join(b"X-%d: y\r\n" % number for number in range(200)) + b"\r\n",
        b"Set-Cookie: session=a secret\0\r\n\r\n",
    ],
    ids=["beyond its length", "bad chunk", "bad length", "long field", "many fields", "NUL"],
)
@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        ("200 OK", None),
        ("204 No Content", None),
        ("404 Not Found", "PERMANENT"),
        ("503 Busy", "TRANSIENT"),
    ],
)
def test_a_status_decides_whatever_comes_with_it(
    queue: Callbacks,
    start: Start,
    receive: Receive,
    status: str,
    error_class: str | None,
    rest: bytes,
    segments: int,
) -> None:
    # https://github.com/aio-libs/aiohttp/issues/1905
    head = f"HTTP/1.1 {status}\r\nRetry-After: 7200\r\n".encode()
    parts = [head + rest] if segments == 1 else [head, rest]
    queue.set_endpoint(receive(in_parts(parts)).url)
    start()
    task = queue.send()
    wait_until(lambda: queue.outcomes(task))
    attempt = queue.last(task)
    assert attempt.error_class == error_class
    if error_class:
        assert attempt.error_type == f"http.{status[:3]}"
        assert "secret" not in f"{attempt.message}{attempt.detail}"
    if error_class == "TRANSIENT":
        wait = queue.task(task).next_attempt_at - attempt.finished_at
        assert wait.total_seconds() >= 7200


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        (close, "lost"),
        (reset, "lost"),
        (raw(b"HTTP/1.1 20"), "lost"),
        (raw(b"what?\r\n\r\n"), "garbled"),
        (raw(b"HTTP/1.1 abc OK\r\n\r\n"), "garbled"),
        (raw(b"\x16\x03\x01\0\xff\0\0"), "garbled"),
        (drip_status, "timeout"),
    ],
)
def test_what_is_lost_after_the_request_was_sent_is_ambiguous(
    queue: Callbacks, start: Start, receive: Receive, behave: object, kind: str
) -> None:
    queue.alter(max_attempts=1)
    timeout = "2 seconds" if kind == "timeout" else "15 seconds"
    queue.set_endpoint(receive(behave).url, timeout=timeout)  # type: ignore[arg-type]
    start()
    task = queue.send()
    queue.wait_for("DEAD", task)
    attempt = queue.last(task)
    assert (attempt.error_type, attempt.error_class) == (f"http.{kind}", "AMBIGUOUS")
    assert attempt.detail["sent"]
    assert "status" not in attempt.detail


def test_an_answer_that_does_not_come_ends_with_the_deadline(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    queue.alter(max_attempts=1)
    receiver = receive(lambda request, connection: receiver.hang(request, connection))
    queue.set_endpoint(receiver.url, timeout="2 seconds")
    start()
    task = queue.send()
    queue.wait_for("DEAD", task)
    attempt = queue.last(task)
    assert (attempt.error_type, attempt.error_class) == ("http.timeout", "AMBIGUOUS")
    assert attempt.detail["seconds"] > 1.99


def test_what_fails_before_a_request_is_sent_is_transient(
    queue: Callbacks, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def resolve_some(host: Any, *args: Any, **options: Any) -> Any:
        # Where no name server answers, a real look-up would take longer than there is time.
        if host == "nowhere.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_some)
    queue.alter(max_attempts=1)
    with refusing() as refused, unanswering() as silent:
        queue.set_endpoint(refused, "refused")
        queue.set_endpoint(silent, "connect_timeout", timeout="300 milliseconds")
        queue.set_endpoint("http://nowhere.invalid/", "dns")
        start()
        for kind in ("refused", "connect_timeout", "dns"):
            task = queue.send(handler=kind)
            queue.wait_for("DEAD", task)
            attempt = queue.last(task)
            assert (attempt.error_type, attempt.error_class) == (f"http.{kind}", "TRANSIENT")
            assert not attempt.detail["sent"]


def test_a_status_decides_though_its_fields_never_end(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    queue.set_endpoint(receive(drip).url, timeout="2 seconds")
    start()
    queue.wait_for("SUCCEEDED", queue.send())


def test_a_status_decides_though_the_body_never_ends(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    queue.set_endpoint(receive(drip_body).url, timeout="2 seconds")
    start()
    task = queue.send()
    queue.wait_for("DEAD", task)
    attempt = queue.last(task)
    assert attempt.error_type == "http.404"
    assert attempt.detail["body"].startswith("xxx")
    assert attempt.detail["body"].endswith("[cut by rdq]")


def test_a_body_without_end_is_read_no_further_than_it_is_kept(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    queue.alter(max_attempts=1)
    queue.set_endpoint(receive(flood).url)
    start()
    task = queue.send()
    queue.wait_for("DEAD", task)
    attempt = queue.last(task)
    assert attempt.error_type == "http.500"
    assert attempt.detail["seconds"] < 5
    assert len(attempt.detail["body"].encode()) <= 4096


def test_an_answer_that_postgresql_cannot_store_is_made_storable(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    behave = raw(
        b"HTTP/1.1 400 \xff\xfe bad\r\nServer: \xed\xa0\x80\r\nContent-Encoding: gzip\r\n"
        b"Content-Length: 5\r\n\r\na\0\xff\x1b["
    )
    queue.set_endpoint(receive(behave).url)
    start()
    task = queue.send()
    queue.wait_for("DEAD", task)
    attempt = queue.last(task)
    assert attempt.error_type == "http.400"
    assert attempt.detail["body"].replace("\N{REPLACEMENT CHARACTER}", "?") == "a???["


def test_an_early_answer_to_a_large_request_counts(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    """A server may refuse a body that it has not read."""

    def behave(request: Request, connection: socket.socket) -> None:
        answer(413)(request, connection)
        receiver.ended.wait(30)

    queue.alter(max_attempts=1, max_payload_bytes=20_000_000)
    receiver = receive(behave, reads_bodies=False)
    queue.set_endpoint(receiver.url)
    start()
    task = queue.send(b"x" * 20_000_000)
    queue.wait_for("DEAD", task)
    assert queue.last(task).error_type == "http.413"


def test_a_certificate_that_is_trusted_for_the_name_is_accepted(
    queue: Callbacks, start: Start, receive: Receive, authority: trustme.CA, trusted: None
) -> None:
    receiver = receive(answer(200), tls=served_as(authority, "localhost"))
    queue.set_endpoint(receiver.url.replace("127.0.0.1", "localhost"))
    start()
    queue.wait_for("SUCCEEDED", queue.send())


def test_trouble_with_tls_is_transient_and_sends_nothing(
    queue: Callbacks, start: Start, receive: Receive, authority: trustme.CA, trusted: None
) -> None:
    queue.alter(max_attempts=1)
    other_name = receive(answer(200), tls=served_as(authority, "other.example"))
    untrusted = receive(answer(200), tls=served_as(trustme.CA(), "localhost"))
    plain = receive(answer(200))
    for receiver in (other_name, untrusted, plain):
        queue.set_endpoint(f"https://localhost:{receiver.port}/", str(receiver.port))
    start()
    for receiver in (other_name, untrusted, plain):
        task = queue.send(handler=str(receiver.port))
        queue.wait_for("DEAD", task)
        attempt = queue.last(task)
        assert (attempt.error_type, attempt.error_class) == ("http.tls", "TRANSIENT")
        assert not attempt.detail["sent"]
        assert not receiver.requests
