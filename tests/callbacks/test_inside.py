"""J2: callbacks do not reach inside, by no name and no spelling, at no attempt."""

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.callbacks.conftest import Callbacks, Receive, Start
from tests.callbacks.receivers import answer, in_turn
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until


class Names:
    """Names that resolve to what the test says: a list a look-up, the last one for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self._resolve = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._getaddrinfo)

    def _getaddrinfo(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        answers = self.answers.get(host.lower())
        if answers is None:
            return self._resolve(host, port, *args, **options)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            found
            for address in addresses
            for found in self._resolve(address, port, type=socket.SOCK_STREAM)
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
        "0",
        "[::]",
        "example.com\\.127.0.0.1",
    ],
)
def test_no_spelling_of_an_inner_address_is_connected_to(
    queue: Callbacks, start: Start, receive: Receive, host: str
) -> None:
    receiver = receive(answer(200))
    queue.set_endpoint(f"http://{host}:{receiver.port}/")
    start(allow_destinations=[])
    task = queue.send()
    wait_until(lambda: queue.outcomes(task))
    attempt = queue.last(task)
    assert not receiver.connections
    if attempt.outcome == "RELEASED":
        assert "this runner does not allow it" in attempt.message
    else:
        # Where no name server answers, a name is not known within the time instead of not at all.
        assert attempt.error_type in {"http.url", "http.dns", "http.connect_timeout"}


def test_a_refusal_says_what_was_refused_and_why(queue: Callbacks, start: Start) -> None:
    queue.set_endpoint("http://169.254.169.254/latest/meta-data/")
    start()
    task = queue.send()
    queue.wait_for_outcomes("RELEASED", task)
    assert queue.last(task).message == (
        "the address 169.254.169.254 is link-local, and this runner does not allow it"
    )


def test_a_runner_that_may_not_call_hands_the_task_back_for_one_that_may(
    queue: Callbacks,
    start: Start,
    receive: Receive,
    database: str,
    tmp_path: Path,
) -> None:
    queue.alter(max_attempts=1)
    receiver = receive(answer(200))
    queue.set_endpoint(receiver.url)
    task = queue.send()
    with RunnerProcess(database, tmp_path) as without:
        queue.wait_for_outcomes("RELEASED", task)
        for event in ("endpoint is out of reach", "cannot send"):
            [said] = [line for line in without.events if line["event"] == event]
            assert said["level"] == "warning"
            assert (said["queue"], said["handler"]) == ("q", "hook")
            assert "loopback" in said["reason"]
    assert not receiver.connections
    assert queue.task(task).attempt_count == 0
    queue.make_due(task)
    start()
    queue.wait_for("SUCCEEDED", task)


def test_a_redirect_is_not_followed(queue: Callbacks, start: Start, receive: Receive) -> None:
    inside = receive(answer(200))
    location = f"Location: http://127.0.0.1:{inside.port}/latest/meta-data/"
    for status in (301, 302, 303, 307, 308):
        queue.set_endpoint(receive(answer(status, location)).url, str(status))
    start()
    for status in (301, 302, 303, 307, 308):
        task = queue.send(handler=str(status))
        queue.wait_for("DEAD", task)
        attempt = queue.last(task)
        assert attempt.error_class == "PERMANENT"
        assert attempt.detail["headers"]["location"] == location.removeprefix("Location: ")
    assert not inside.connections


def test_a_name_is_checked_anew_at_each_attempt(
    queue: Callbacks, start: Start, receive: Receive, names: Names
) -> None:
    outside = receive(in_turn(answer(503), answer(200)))
    inside = receive(answer(200), host="127.0.0.2", port=outside.port)
    names.answers["rebinding.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    queue.set_endpoint(f"http://rebinding.example:{outside.port}/")
    start(allow_destinations=["127.0.0.1"])
    task = queue.send()
    wait_until(lambda: queue.outcomes(task) == ["FAILED", "RELEASED"])
    first, second = queue.history(task)
    assert first.error_type == "http.503"
    assert second.message.startswith("the address 127.0.0.2 is loopback")
    assert (outside.connections, inside.connections) == (1, 0)
    names.answers["rebinding.example"] = [["127.0.0.1"]]
    queue.make_due(task)
    queue.wait_for("SUCCEEDED", task)


def test_of_a_name_with_two_addresses_only_the_allowed_one_is_used(
    queue: Callbacks, start: Start, receive: Receive, names: Names
) -> None:
    outside = receive(answer(200))
    inside = receive(answer(200), host="127.0.0.2", port=outside.port)
    names.answers["both.example"] = [["127.0.0.2", "127.0.0.1"]]
    queue.set_endpoint(f"http://both.example:{outside.port}/")
    start(allow_destinations=["127.0.0.1"])
    queue.wait_for("SUCCEEDED", *[queue.send() for _ in range(5)])
    assert (outside.connections, inside.connections) == (5, 0)


def test_an_allowed_address_that_is_down_does_not_lead_to_one_that_is_not_allowed(
    queue: Callbacks, start: Start, receive: Receive, names: Names
) -> None:
    queue.alter(max_attempts=1)
    with socket.socket() as down:
        # Bound, so that nobody else gets it, but nobody listens.
        down.bind(("127.0.0.1", 0))
        inside = receive(answer(200), host="127.0.0.2", port=down.getsockname()[1])
        names.answers["both.example"] = [["127.0.0.1", "127.0.0.2"]]
        queue.set_endpoint(f"http://both.example:{inside.port}/")
        start(allow_destinations=["127.0.0.1"])
        task = queue.send()
        queue.wait_for("DEAD", task)
    assert queue.last(task).error_class == "TRANSIENT"
    assert not inside.connections


def test_a_host_that_is_allowed_is_called_by_that_name_only(
    queue: Callbacks, start: Start, receive: Receive, names: Names
) -> None:
    names.answers["app.internal"] = names.answers["other.internal"] = [["127.0.0.1"]]
    receiver = receive(answer(200))
    queue.set_endpoint(f"http://App.Internal:{receiver.port}/", "app")
    queue.set_endpoint(f"http://other.internal:{receiver.port}/", "other")
    start(allow_destinations=["app.internal"])
    app, other = queue.send(handler="app"), queue.send(handler="other")
    queue.wait_for("SUCCEEDED", app)
    queue.wait_for_outcomes("RELEASED", other)
    assert len(receiver.requests) == 1


def test_the_command_takes_destinations_and_refuses_what_is_none(
    database: str, queue: Callbacks, receive: Receive, tmp_path: Path
) -> None:
    queue.set_endpoint(receive(answer(200)).url)
    task = queue.send()
    wrong = RunnerProcess(database, tmp_path, "--allow-destination", "127.0.0.0/33")
    assert wrong.ended() != 0
    assert "'127.0.0.0/33' is not a destination" in wrong.output
    runner = RunnerProcess(database, tmp_path, "--allow-destination", "127.0.0.0/8")
    try:
        queue.wait_for("SUCCEEDED", task)
        assert runner.stop() == 0
    finally:
        runner.kill()
