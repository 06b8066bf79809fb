"""Beside a call that a role of each capability has made in a transaction, and left open.

Every public function is called so. Everybody else goes on: at once with another queue, and within
the bound that the functions set where the open call is in the way.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import Rollback

from tests.races.roles import Roles

BOUND = "100ms"
"""Instead of the seconds that the functions wait for a lock."""
ENDLESS = "3s"
AT_ONCE_SECONDS = 1.0
# RD004 is what rdq.drop_queue answers where a queue is in use.
BUSY = {"RD010", "55P03", "RD004"}
OF_ANY_QUEUE = {"grant_access", "revoke_access", "pause_redrive", "cancel_redrive"}
"""Rights are granted one at a time, and a tick carries on whichever redrive it comes upon."""

SETTINGS = '{"backoff_base": 0, "jitter": 0, "lease": "1 hour"}'
SETUP = """
select rdq.create_queue(%(q)s, %(settings)s::jsonb);
select rdq.create_queue('empty-' || %(q)s);
select rdq.create_queue('paused-' || %(q)s);
select rdq.pause_queue('paused-' || %(q)s);
select rdq.set_endpoint(%(q)s, 'h', 'https://example.org/');
select rdq.submit(%(q)s, 'h', 'x', error => '{"type": "E", "class": "PERMANENT"}')
from generate_series(1, 4);
select rdq.submit(%(q)s, 'h', 'x') from generate_series(1, 8);
select count(*) from rdq.claim(array[%(q)s], 'tester', 4);
select rdq.redrive_where(%(q)s, per_second => 0.001);
select rdq.pause_redrive(r.redrive_id) from rdq.redrive_where(%(q)s, per_second => 0.001) r;
-- Written by nobody who lives, so that anybody may change it.
select rdq.runner_seen('old runner of ' || %(q)s, 'host', '1', 'v', array[%(q)s]);
update rdq.runner set seen_at = seen_at - interval '1 hour';
"""
IDS = """
select
  l.task_id as held, l.claim_token as token,
  (select d.task_id from rdq.due d where d.queue = %(q)s order by d.task_id desc limit 1) as due,
  (select d.task_id from rdq.dead d where d.queue = %(q)s order by d.task_id desc limit 1) as dead,
  (select redrive_id from rdq.redrives where state = 'RUNNING' and filter ->> 'queue' = %(q)s)
    as running,
  (select redrive_id from rdq.redrives where state = 'PAUSED' and filter ->> 'queue' = %(q)s)
    as paused
from rdq.lease l
where l.queue = %(q)s
order by l.task_id
limit 1
"""

# What each public function is called with; those of each capability, and a view has no arguments.
CALLS = {
    "producer": {
        "version": "()",
        "uuid_v7": "()",
        "submit": "(%(q)s, 'h', 'x'::text)",
        "submit_many": """(%(q)s, '[{"handler": "h", "payload": 1}]'::text)""",
    },
    "worker": {
        "claim": "(array[%(q)s], 'w', 2)",
        "heartbeat": "(array[%(held)s::uuid], array[%(token)s::uuid])",
        "complete": "(%(held)s, %(token)s)",
        "fail": "(%(held)s, %(token)s, 'E')",
        "report": "(array[%(held)s::uuid], array[%(token)s::uuid], array[null::jsonb])",
        "release": "(array[%(held)s::uuid], array[%(token)s::uuid])",
        "reclaim": "(10, array[%(q)s])",
        "next_due_at": "(array[%(q)s])",
        "tick": "(10, array[%(q)s])",
        "policies": "(array[%(q)s])",
        "callbacks": "(array[%(q)s])",
        "runner_seen": "('new runner of ' || %(q)s, 'host', '1', 'v', array[%(q)s])",
        "runner_gone": "('old runner of ' || %(q)s)",
    },
    "viewer": {
        "tasks": "",
        "queues": "",
        "queue_stats": "",
        "recent_queue_stats": "()",
        "refresh_queue_stats": "()",
        "dead_letters": "(%(q)s)",
        "dead_letter_groups": "(%(q)s)",
        "dead_letter_timeline": "(%(q)s)",
        "history": "(%(dead)s)",
        "envelope": "(%(dead)s)",
        "fingerprint": "('h', 'E', 'm')",
        "redrive_status": "(%(running)s)",
        "redrives": "",
        "audit_log": "",
        "endpoints": "",
        "runners": "",
        "doctor": "()",
    },
    "operator": {
        "redrive": "(%(dead)s, 'edited'::text)",
        "redrive_where": "(%(q)s)",
        "pause_redrive": "(%(running)s)",
        "resume_redrive": "(%(paused)s)",
        "cancel_redrive": "(%(running)s)",
        "cancel": "(%(due)s)",
        "cancel_where": "(%(q)s)",
        "purge": "(%(dead)s)",
        "purge_where": "(%(q)s)",
        "pause_queue": "(%(q)s)",
        "resume_queue": "('paused-' || %(q)s)",
    },
    "admin": {
        "create_queue": "(%(q)s)",
        "alter_queue": """(%(q)s, '{"max_attempts": 9}')""",
        "drop_queue": "('empty-' || %(q)s)",
        "set_endpoint": "(%(q)s, 'h', 'https://example.com/')",
        "drop_endpoint": "(%(q)s, 'h')",
        "grant_access": "(%(role)s, 'viewer', array[%(q)s])",
        "revoke_access": "(%(role)s, 'viewer')",
        "purge_audit": "('1 year')",
    },
}
STATEMENTS = {
    name: f"select * from rdq.{name}{arguments}"
    for calls in CALLS.values()
    for name, arguments in calls.items()
}

Ids = dict[str, Any]


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    with ExitStack() as stack:
        yield Roles(database, stack)


@pytest.fixture
def queues(db: psycopg.Connection[Any], roles: Roles) -> dict[str, Ids]:
    """Two queues that have everything, and what a call on each of them is given."""
    db.execute(
        """
        do $$
        declare
          bounded regprocedure;
        begin
          for bounded in
            select p.oid from pg_proc p, unnest(p.proconfig) c (setting)
            where p.pronamespace = 'rdq'::regnamespace and c.setting like 'lock_timeout=%'
          loop
            execute format('alter function %s set lock_timeout = ''BOUND''', bounded);
          end loop;
        end
        $$
        """.replace("BOUND", BOUND).encode()
    )
    cursor = psycopg.ClientCursor(db, row_factory=psycopg.rows.dict_row)
    found: dict[str, Ids] = {}
    for q in ("q", "other"):
        role = roles.grant(roles.create(f"of_{q}"), "viewer", q)
        given = {"q": q, "role": role, "settings": SETTINGS}
        cursor.execute(SETUP, given)
        row = cursor.execute(IDS, given).fetchone()
        assert row
        assert all(row.values()), row
        found[q] = {**given, **row}
    return found


def test_every_public_function_is_called(db: psycopg.Connection[Any]) -> None:
    names = db.execute(
        "select distinct n.name from rdq._capabilities() c, unnest(c.names) n (name)"
        r" where n.name not like '\_%'"
    ).fetchall()
    assert {name for (name,) in names} == STATEMENTS.keys()


@pytest.mark.parametrize("capability", CALLS)
def test_nobody_waits_without_bound_for_a_call_that_is_left_open(
    db: psycopg.Connection[Any], queues: dict[str, Ids], roles: Roles, capability: str
) -> None:
    holder = roles.connect(roles.grant(roles.create(capability), capability, "*"))
    db.execute(f"set statement_timeout = '{ENDLESS}'".encode())
    waits = []
    for name in CALLS[capability]:
        with holder.transaction():
            holder.execute(STATEMENTS[name].encode(), queues["q"])
            for other in STATEMENTS:
                for queue, ids in queues.items():
                    outcome, seconds = attempt(db, other, ids)
                    here = queue == "q" or other in OF_ANY_QUEUE
                    if outcome not in ({*BUSY, "ok"} if here else {"ok"}):
                        waits.append((name, other, queue, outcome))
                    elif seconds > AT_ONCE_SECONDS:
                        waits.append((name, other, queue, f"{seconds:.1f} s"))
            raise Rollback
    assert not waits, "\n".join(map(str, waits))


def attempt(db: psycopg.Connection[Any], name: str, ids: Ids) -> tuple[str, float]:
    """Call a function, and undo it; return ok or the SQLSTATE, and how many seconds it took."""
    began_at = time.monotonic()
    outcome = "ok"
    with db.transaction():
        try:
            psycopg.ClientCursor(db).execute(STATEMENTS[name].encode(), ids)
        except psycopg.Error as error:
            outcome = str(error.sqlstate)
        raise Rollback
    return outcome, time.monotonic() - began_at
