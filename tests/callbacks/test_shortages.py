"""What a runner lacks costs no task an attempt."""

import errno
import os
import socket
import threading
import time
from typing import Any
from urllib.error import URLError

import pytest

from rdq_runner import Handlers, Task, names
from rdq_runner.answers import Exchange
from rdq_runner.posts import Client, _Post
from rdq_runner.shortages import shortage
from tests.callbacks.conftest import Callbacks, Receive, Start
from tests.callbacks.receivers import answer
from tests.waiting import wait_until

NUMBERS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL)


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
def test_a_handler_that_meets_a_shortage_of_the_runner_is_handed_back(
    queue: Callbacks, start: Start, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    # https://github.com/HubSpot/Singularity/issues/1765
    queue.alter(max_attempts=1)
    handlers = Handlers()
    short = [True]

    @handlers.handler("act")
    def act(task: Task) -> None:
        if short:
            short.pop()
            raise URLError(OSError(number, os.strerror(number)))

    start(handlers=handlers)
    task = queue.send(handler="act")
    queue.wait_for_outcomes("RELEASED", task)
    assert os.strerror(number) in queue.last(task).message
    [said] = [r for r in caplog.records if r.message == "runner cannot work"]
    assert said.levelname == "WARNING"
    queue.make_due(task)
    queue.wait_for("SUCCEEDED", task)


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
def test_a_callback_that_meets_a_shortage_of_the_runner_is_handed_back(
    queue: Callbacks,
    start: Start,
    receive: Receive,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    queue.alter(max_attempts=1)
    open_socket = Client._open_socket
    short = [True]

    def lacking(self: Client, info: tuple[Any, ...]) -> socket.socket:
        if short:
            short.pop()
            raise OSError(number, os.strerror(number))
        return open_socket(self, info)

    monkeypatch.setattr(Client, "_open_socket", lacking)
    queue.set_endpoint(receive(answer(200)).url)
    start()
    task = queue.send()
    queue.wait_for_outcomes("RELEASED", task)
    assert os.strerror(number) in queue.last(task).message
    queue.make_due(task)
    queue.wait_for("SUCCEEDED", task)


def test_a_dead_name_server_holds_up_its_own_endpoints_only(
    queue: Callbacks, start: Start, receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    # https://github.com/python/cpython/issues/112169
    queue.alter(max_attempts=1)
    resolve, answers = socket.getaddrinfo, threading.Event()
    asked = []

    def hang(host: Any, *rest: Any, **options: Any) -> Any:
        if host == "dead.example":
            asked.append(host)
            answers.wait(120)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return resolve(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    receiver = receive(answer(200))
    queue.set_endpoint("http://dead.example/", "dead", timeout="60 seconds")
    queue.set_endpoint(f"http://localhost:{receiver.port}/", "alive", timeout="5 seconds")
    runner = start(concurrency=8, allow_destinations=["127.0.0.0/8", "::1"])
    dead = [queue.send(handler="dead") for _ in range(6)]
    queue.wait_for("IN_FLIGHT", *dead)
    wait_until(lambda: asked)
    alive = [queue.send(handler="alive") for _ in range(10)]
    queue.wait_for("SUCCEEDED", *alive)
    assert [queue.outcomes(task) for task in alive] == [["SUCCEEDED"]] * 10
    # Those who want to know the same share one look-up.
    assert len(asked) == 1
    began = time.monotonic()
    runner.stop(grace=0)
    assert time.monotonic() - began < 5
    assert [queue.outcomes(task) for task in dead] == [["RELEASED"]] * 6
    answers.set()


class Liar(Exception):
    @property
    def reason(self) -> object:
        raise SystemExit(3)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (OSError(errno.EMFILE, "Too many open files"), True),
        (caused(ValueError("cannot connect"), OSError(errno.EMFILE, "Too many")), True),
        (ExceptionGroup("g", [OSError(errno.EMFILE, "a"), OSError(errno.ENFILE, "b")]), True),
        (RuntimeError("can't start new thread"), True),
        (ExceptionGroup("g", [OSError(errno.EMFILE, "a"), ValueError()]), False),
        (OSError(errno.ECONNREFUSED, "refused"), False),
        (RuntimeError("something else"), False),
        (Liar(), False),
    ],
)
def test_what_is_a_shortage(error: Exception, short: bool) -> None:
    assert (shortage(error) is not None) == short


def test_a_look_up_for_which_there_is_no_thread_is_tried_again(
    queue: Callbacks, start: Start, receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start
    short = [True]

    def lacking(self: threading.Thread) -> None:
        if short and getattr(self, "_target", None) is names._look_up:
            short.pop()
            raise RuntimeError("can't start new thread")
        begin(self)

    monkeypatch.setattr(threading.Thread, "start", lacking)
    queue.set_endpoint(f"http://localhost:{receive(answer(200)).port}/")
    start(allow_destinations=["127.0.0.0/8", "::1"])
    task = queue.send()
    queue.wait_for_outcomes("RELEASED", task)
    queue.make_due(task)
    queue.wait_for("SUCCEEDED", task)


@pytest.mark.parametrize("part", [b"x", b"a\n", b"a: b\r\n"])
def test_a_head_that_drips_costs_little(part: bytes) -> None:
    exchange = Exchange()
    post = _Post(exchange, "host")
    began = time.process_time()
    for byte in b"HTTP/1.1 200 OK\r\n":
        post.read_head(bytes([byte]))
    for _ in range(65_536):
        post.read_head(part)
    assert time.process_time() - began < 5
    assert exchange.status == 200
