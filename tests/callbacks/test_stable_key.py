"""J6: a task has one idempotency key, whatever becomes of its attempts."""

from contextlib import ExitStack
from pathlib import Path

from tests.callbacks.conftest import Callbacks, Receive
from tests.callbacks.receivers import answer, in_turn
from tests.runner.processes import RunnerProcess
from tests.waiting import wait_until


def test_the_key_stays_over_a_killed_runner_a_retry_and_a_redrive(
    queue: Callbacks, receive: Receive, database: str, tmp_path: Path
) -> None:
    queue.alter(lease="2 seconds")
    receiver = receive(
        in_turn(
            lambda request, connection: receiver.hang(request, connection),
            answer(503),
            answer(410),
            answer(200),
        )
    )
    queue.set_endpoint(receiver.url)

    def run() -> RunnerProcess:
        options = ("--allow-destination", "127.0.0.0/8", "--poll-interval", "0.2")
        handlers = ("--handlers", "tests.runner.behaviours:old")
        return stack.enter_context(RunnerProcess(database, tmp_path, *handlers, *options))

    with ExitStack() as stack:
        first = run()
        task = queue.send()
        wait_until(lambda: receiver.requests)
        first.kill()
        run()
        queue.wait_for("DEAD", task)
        queue.redrive_as_it_is(task)
        queue.wait_for("SUCCEEDED", task)
    assert queue.outcomes(task) == ["LEASE_EXPIRED", "FAILED", "FAILED", "SUCCEEDED"]
    sent = [request.fields for request in receiver.requests]
    assert [fields["rdq-attempt"] for fields in sent] == ["1", "2", "3", "4"]
    assert {fields["idempotency-key"] for fields in sent} == {str(task)}
    assert {fields["webhook-id"] for fields in sent} == {str(task)}
