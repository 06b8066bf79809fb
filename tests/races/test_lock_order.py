"""Whoever locks leases locks them in the order of ids, so that nobody waits in a circle.

Also those that skip what is locked: PostgreSQL lets them wait all the same, if the lock that they
came upon was a heartbeat's that ended in that instant, and somebody has taken the renewed lease.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from psycopg.errors import Diagnostic

from tests.races.conftest import OpenSession
from tests.races.sessions import Claim, Session

Call = Callable[[Session, list[Claim]], object]

FAILURE = {"type": "E"}
CALLS: Mapping[str, Call] = {
    "heartbeat": lambda session, claims: session.heartbeat(claims),
    "report": lambda session, claims: session.report(claims),
    "report of failures": lambda session, claims: session.report(claims, [FAILURE] * len(claims)),
    "release": lambda session, claims: session.release(claims),
    "complete": lambda session, claims: session.complete(claims[0]),
    "reclaim": lambda session, claims: session.reclaim(len(claims)),
    "claim of expired": lambda session, claims: session.claim(len(claims)),
    "tick": lambda session, claims: session.tick(len(claims)),
}
EXPLAIN = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_format": "json",
    "log_level": "notice",
}
SECONDS = 5
HEARTBEAT = """
select count(h)
from (
  select array_agg(l.task_id), array_agg(l.claim_token)
  from (select l.* from rdq.lease l order by l.task_id desc) l
  having count(*) > 0
) l (task_ids, claim_tokens)
cross join rdq.heartbeat(l.task_ids, l.claim_tokens) h
"""
RELEASE = """
select count(r)
from (
  select array_agg(l.task_id), array_agg(l.claim_token) from rdq.lease l having count(*) > 0
) l (task_ids, claim_tokens)
cross join rdq.release(l.task_ids, l.claim_tokens) r
"""
CLAIM = "select count(*) from rdq.claim('{q}', 'worker', 10)"


@pytest.mark.parametrize("leases", [0, 1, 5000], ids="analysed with {}".format)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_leases_are_locked_by_a_walk_in_the_order_of_ids_whatever_the_statistics(
    first: Session, second: Session, call: Call, leases: int
) -> None:
    first.execute("alter table rdq.lease set (autovacuum_enabled = off)")
    first.submit_many([{}] * (leases + 20))
    if leases:
        first.claim(leases)
    first.execute("analyze rdq.lease")
    claims = first.claim(20)
    first.execute("update rdq.lease set expires_at = clock_timestamp()")
    locks = [scan for plan in plans_of(second, call, claims) for scan in locking_scans(plan)]
    assert locks
    for scan in locks:
        assert scan["Node Type"] == "Index Scan", scan
        assert scan["Index Name"] == "lease_pkey", scan
        assert scan["Scan Direction"] == "Forward", scan
        assert scan["Index Cond"].startswith("(task_id = ANY"), scan


@pytest.mark.slow
def test_heartbeats_and_reports_of_the_same_leases_do_not_wait_in_a_circle(
    open_session: OpenSession,
) -> None:
    """This finds what it looks for more often than not; the test above, always."""
    first = open_session()
    first.execute("select rdq.alter_queue('q', '{\"max_releases\": 10000}')")
    first.submit_many([{}] * 30)
    end = time.monotonic() + SECONDS
    calls = [
        session.start(repeat, session, queries, end)
        for queries in [[HEARTBEAT], [RELEASE, CLAIM]] * 8
        for session in [open_session()]
    ]
    for call in calls:
        call.result()
    assert first.value("select count(*) > 1000 from rdq.attempt")


def repeat(session: Session, queries: Sequence[str], end: float) -> None:
    while time.monotonic() < end:
        for query in queries:
            session.execute(query)


def plans_of(session: Session, call: Call, claims: list[Claim]) -> list[dict[str, Any]]:
    """Make the call; return the plans of all its statements."""
    notices: list[str] = []

    def note(diagnostic: Diagnostic) -> None:
        notices.append(diagnostic.message_primary or "")

    session.execute("load 'auto_explain'")
    for name, value in EXPLAIN.items():
        session.execute(f"set auto_explain.{name} = '{value}'")
    session.connection.add_notice_handler(note)
    call(session, claims)
    session.connection.remove_notice_handler(note)
    return [json.loads(notice.partition("plan:\n")[2])["Plan"] for notice in notices]


def locking_scans(plan: dict[str, Any], locks: bool = False) -> Iterator[dict[str, Any]]:
    """Find the scans of leases, however deep, below what locks or deletes the rows that come up."""
    if locks and plan["Node Type"].endswith("Scan") and plan.get("Relation Name") == "lease":
        yield plan
    locks = locks or plan["Node Type"] == "LockRows" or plan.get("Operation") == "Delete"
    for child in plan.get("Plans", []):
        yield from locking_scans(child, locks)
