"""A client that holds a claim is killed; the next one that only claims recovers the task."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

from tests.races.sessions import Session
from tests.waiting import wait_until
from tools.postgres import embedded_binaries

CLAIM = "select task_id, attempt_no from rdq.claim('{q}', 'psql', lease => '400 milliseconds')"

Psql = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def psql(database: str) -> Iterator[Psql]:
    """Start psql with a statement; it stays connected for as long as nobody ends it."""
    binaries = embedded_binaries()
    assert binaries is not None
    with ExitStack() as stack:

        def start(statement: str) -> "subprocess.Popen[str]":
            client = subprocess.Popen(
                [binaries / "psql", "-X", "-q", "-A", "-t", "-F", " ", database],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(client)
            stack.callback(client.kill)
            assert client.stdin
            client.stdin.write(f"{statement};\n")
            client.stdin.flush()
            return client

        yield start


def claimed_by(client: "subprocess.Popen[str]") -> tuple[UUID, int]:
    """Wait for the one row of a claim: the task, and the number of the attempt."""
    assert client.stdout
    task_id, attempt_no = client.stdout.readline().split()
    return UUID(task_id), int(attempt_no)


def test_a_claim_in_psql_recovers_what_a_killed_psql_held(psql: Psql, first: Session) -> None:
    task_id = first.submit()
    assert recovered(psql, first) == (task_id, 2)
    assert first.outcomes(task_id) == ["LEASE_EXPIRED"]


def test_numbering_goes_on_when_a_client_is_killed_after_a_redrive(
    psql: Psql, first: Session
) -> None:
    task_id = first.submit()
    recovered(psql, first)
    first.expire_leases()
    first.bury(task_id)
    assert first.outcomes(task_id) == ["LEASE_EXPIRED", "LEASE_EXPIRED", "FAILED"]
    first.redrive(task_id)
    assert recovered(psql, first) == (task_id, 5)
    assert first.history(task_id)[-1] == (4, "LEASE_EXPIRED", None)
    assert first.value("select attempt_count from rdq.tasks") == 2


def test_a_claim_whose_client_is_killed_before_it_commits_has_not_been_made(
    psql: Psql, first: Session
) -> None:
    task_id = first.submit()
    client = psql(f"begin; {CLAIM}")
    claimed_by(client)
    assert first.claim() == []
    client.send_signal(signal.SIGKILL)
    claim = wait_until(first.claim)
    assert [(c.task_id, c.attempt_no) for c in claim] == [(task_id, 1)]


def recovered(psql: Psql, observer: Session) -> tuple[UUID, int]:
    """Claim with psql, kill it, and claim with another one, which does nothing else."""
    killed = psql(CLAIM)
    held = claimed_by(killed)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    wait_until(
        lambda: observer.value("select bool_and(expires_at <= clock_timestamp()) from rdq.lease")
    )
    assert observer.outcomes(held[0])[-1:] != ["SUCCEEDED"]
    return claimed_by(psql(CLAIM))
