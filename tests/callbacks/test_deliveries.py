"""J3 and J6: each delivery is signed anew, over the bytes sent, under one name for ever."""

import socket
import threading

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.callbacks.conftest import SECRET, Callbacks, Receive, Start
from tests.callbacks.receivers import Behaviour, Request, answer, in_turn, reset, unanswering
from tests.waiting import wait_until


def verified(then: Behaviour) -> Behaviour:
    """Behave so where the reference library accepts the request; answer 401 where it does not."""

    def behave(request: Request, connection: socket.socket) -> None:
        try:
            Webhook(SECRET).verify(request.body, dict(request.fields.items()), json_parse=False)
        except WebhookVerificationError:
            answer(401)(request, connection)
        else:
            then(request, connection)

    return behave


def test_a_receiver_with_the_reference_library_accepts_attempts_and_a_redrive(
    queue: Callbacks, start: Start, receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    # The pause is what makes an old timestamp differ from a fresh one.
    behave = in_turn(answer(503, "Retry-After: 2"), answer(410), answer(204))
    receiver = receive(verified(behave))
    queue.set_endpoint(receiver.url, secret="env:HOOK_SECRET")
    start()
    payload = ' {"b": 1,  "a": "ü", "a": 2}\r\n'
    task = queue.send(payload)
    queue.wait_for("DEAD", task)
    assert [attempt.error_type for attempt in queue.history(task)] == ["http.503", "http.410"]
    queue.redrive_as_it_is(task)
    queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["FAILED", "FAILED", "SUCCEEDED"]
    requests = receiver.requests
    assert [request.fields["rdq-attempt"] for request in requests] == ["1", "2", "3"]
    assert {request.body for request in requests} == {payload.encode()}
    assert {request.fields["webhook-id"] for request in requests} == {str(task)}
    assert {request.fields["idempotency-key"] for request in requests} == {str(task)}
    first, second, _ = requests
    assert second.at - first.at > 1.9
    for request, attempt in zip(requests, queue.history(task), strict=True):
        # In whole seconds, from after the claim.
        began = int(attempt.started_at.timestamp())
        assert began <= int(request.fields["webhook-timestamp"]) <= request.at
    assert first.fields["webhook-signature"] != second.fields["webhook-signature"]


def test_an_edited_payload_is_what_is_signed_and_sent(
    queue: Callbacks, start: Start, receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    receiver = receive(verified(in_turn(answer(422), answer(200))))
    queue.set_endpoint(receiver.url, secret="env:HOOK_SECRET")
    start()
    task = queue.send('{"amount": "ten"}')
    queue.wait_for("DEAD", task)
    queue.redrive(task, amount=10)
    queue.wait_for("SUCCEEDED", task)
    assert [request.body for request in receiver.requests] == [
        b'{"amount": "ten"}',
        b'{"amount": 10}',
    ]


def test_a_runner_without_the_secret_hands_the_task_back_for_one_that_has_it(
    queue: Callbacks, start: Start, receive: Receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.alter(max_attempts=1)
    receiver = receive(verified(answer(200)))
    queue.set_endpoint(receiver.url, secret="env:HOOK_SECRET")
    without = start()
    task = queue.send()
    queue.wait_for_outcomes("RELEASED", task)
    without.stop()
    assert not receiver.connections
    row = queue.task(task)
    assert (row.status, row.attempt_count) == ("PENDING", 0)
    attempt = queue.last(task)
    assert "HOOK_SECRET" in attempt.message
    assert 40 < (row.next_attempt_at - attempt.finished_at).total_seconds() < 80
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    queue.make_due(task)
    start()
    queue.wait_for("SUCCEEDED", task)


def test_a_lost_answer_is_ambiguous_and_the_next_request_has_the_same_key(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    charged: list[str] = []

    def charge(request: Request, connection: socket.socket) -> None:
        key = request.fields["idempotency-key"]
        if key in charged:
            answer(200)(request, connection)
        else:
            charged.append(key)
            reset(request, connection)

    receiver = receive(charge)
    queue.set_endpoint(receiver.url)
    start()
    task = queue.send()
    queue.wait_for("SUCCEEDED", task)
    first, second = queue.history(task)
    assert (first.error_class, first.error_type, first.detail["sent"]) == (
        "AMBIGUOUS",
        "http.lost",
        True,
    )
    assert second.outcome == "SUCCEEDED"
    assert charged == [str(task)]


def test_a_queue_can_hold_what_is_ambiguous_as_a_dead_letter_at_once(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    queue.alter(ambiguous_attempts=1)
    receiver = receive(in_turn(reset, answer(200)))
    queue.set_endpoint(receiver.url)
    start()
    task = queue.send()
    queue.wait_for("DEAD", task)
    assert queue.task(task).dead_reason == "AMBIGUOUS"
    assert queue.outcomes(task) == ["FAILED"]
    queue.redrive_as_it_is(task)
    queue.wait_for("SUCCEEDED", task)
    assert {request.fields["idempotency-key"] for request in receiver.requests} == {str(task)}


def test_as_many_requests_are_under_way_as_the_runner_has_slots(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    slots = 110
    all_here = threading.Barrier(slots)

    def behave(request: Request, connection: socket.socket) -> None:
        all_here.wait(20)
        answer(200)(request, connection)

    queue.set_endpoint(receive(behave).url, timeout="25 seconds")
    tasks = [queue.send() for _ in range(slots)]
    start(concurrency=slots)
    queue.wait_for("SUCCEEDED", *tasks)
    assert queue.outcomes(tasks[-1]) == ["SUCCEEDED"]


def test_at_the_end_of_the_grace_period_a_request_that_was_sent_is_ambiguous(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    receiver = receive(lambda request, connection: receiver.hang(request, connection))
    queue.set_endpoint(receiver.url)
    runner = start()
    task = queue.send()
    wait_until(lambda: receiver.requests)
    runner.stop(grace=0)
    attempt = queue.last(task)
    assert (attempt.outcome, attempt.error_type, attempt.error_class) == (
        "FAILED",
        "http.shutdown",
        "AMBIGUOUS",
    )


def test_at_the_end_of_the_grace_period_what_was_not_sent_is_released(
    queue: Callbacks, start: Start
) -> None:
    with unanswering() as url:
        queue.set_endpoint(url)
        runner = start()
        task = queue.send()
        wait_until(lambda: queue.in_flight() == 1)
        runner.stop(grace=0)
    assert queue.outcomes(task) == ["RELEASED"]
    assert queue.task(task).attempt_count == 0


def test_within_the_grace_period_an_answer_still_counts(
    queue: Callbacks, start: Start, receive: Receive
) -> None:
    def late(request: Request, connection: socket.socket) -> None:
        assert stopping.wait(15)
        answer(200)(request, connection)

    stopping = threading.Event()
    receiver = receive(late)
    queue.set_endpoint(receiver.url)
    runner = start()
    task = queue.send()
    wait_until(lambda: receiver.requests)
    stopper = threading.Thread(target=runner.stop, kwargs={"grace": 15})
    stopper.start()
    stopping.set()
    stopper.join()
    assert queue.outcomes(task) == ["SUCCEEDED"]
