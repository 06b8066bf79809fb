"""The same writes: what rdq's functions write into rdq's tables, by bare statements.

A second floor. What stands between it and the first one, bare SQL, is what the tables cost: the
task beside its ticket, the lease, the history, their indexes. What stands between it and rdq is
what the functions cost: PL/pgSQL, and all that they check and decide. So this is left out: who may
do it, and whether the arguments are right; policies, budgets and deadlines; the history (every
attempt is the first); claim tokens, which are written and not compared; expired leases, paused
queues, turns of several queues, the low water; dedupe keys; whether a ticket has its task.

Three things differ besides. A notice is given with every submit, as bare SQL does, while rdq is
silent where runners are busy. A bulk submit is an array of texts, not of JSON. Of a bulk redrive
there is no record of its own, and nobody may cancel it or submit beside it.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid4
from weakref import WeakSet

from tests.bench.contender import Connection, Work
from tests.bench.contenders.rdq import QUEUE, Rdq

SUBMIT: Final = """
    with tasks as (
      insert into rdq.task (id, queue, handler, payload, created_at)
      select rdq.uuid_v7(), %(queue)s, %(handler)s, convert_to(p.payload, 'UTF8'), clock_timestamp()
      from {payloads} as p (payload)
      returning id, queue, created_at
    ),
    tickets as (
      insert into rdq.due (task_id, queue, due_at, life, has_history)
      select id, queue, created_at, 0, false from tasks
      returning task_id, queue
    )
    select {answer} from tickets
    """
SUBMIT_ONE: Final = SUBMIT.format(payloads="(values (%(payload)s))", answer="task_id")
ANNOUNCE_ONE: Final = SUBMIT.format(
    payloads="(values (%(payload)s))", answer="task_id, pg_notify('rdq_due', queue)"
)
SUBMIT_MANY: Final = SUBMIT.format(payloads="unnest(%(payloads)s::text[])", answer="count(*)")
SETTINGS: Final = """
    set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off; set jit = off;
    set plan_cache_mode = force_generic_plan
    """
"""Those of rdq's own functions: the same plans, made once a session, whatever statistics say."""
CLAIM: Final = """
    with taken as (
      delete from rdq.due
      where ctid = any (array(
        select ctid
        from rdq.due
        where queue = %s and due_at <= now()
        order by due_at
        limit %s
        for update skip locked
      ))
      returning task_id, queue, life, give_up_at
    ),
    leased as (
      insert into rdq.lease (
        task_id, claim_token, queue, life, give_up_at, runner, claimed_at, expires_at
      )
      select
        task_id, gen_random_uuid(), queue, life, give_up_at, 'bench', now(), now() + interval '60s'
      from taken
      returning task_id, claim_token
    )
    select l.task_id, l.claim_token, t.payload
    from leased l
    cross join lateral (select payload from rdq.task where id = l.task_id limit 1) t
    """
COMPLETE: Final = """
    with ended as (
      delete from rdq.lease where task_id = any (%s) returning *
    )
    insert into rdq.attempt (
      task_id, attempt_no, life, queue, outcome, runner, started_at, finished_at
    )
    select task_id, 1, life, queue, 'SUCCEEDED', runner, claimed_at, now() from ended
    """
REDRIVE: Final = """
    with taken as (
      delete from rdq.dead
      where ctid = any (array(select ctid from rdq.dead order by task_id limit %s))
      returning task_id, queue, life + 1 as life
    ),
    tickets as (
      insert into rdq.due (task_id, queue, due_at, life)
      select task_id, queue, now(), life from taken
    )
    insert into rdq.redriven (task_id, life, redrive_id) select task_id, life, %s from taken
    """
REDRIVE_BATCH: Final = 10_000


class SameWrites:
    """Three statements: a submit, a claim, a completion; and one to redrive."""

    name = "same writes"

    def __init__(self) -> None:
        self._announces = True
        self._set: WeakSet[Connection] = WeakSet()
        self._rdq = Rdq()

    def version(self) -> str:
        return "as documented in its module"

    def missing(self) -> str | None:
        return None

    def prepare(self, dsn: str) -> None:
        self._rdq.prepare(dsn)

    def announce(self, connection: Connection, on: bool) -> None:
        self._announces = on

    def submit(self, connection: Connection, work: Work, payload: str) -> None:
        connection.execute(
            ANNOUNCE_ONE if self._announces else SUBMIT_ONE,
            {"queue": QUEUE, "handler": work, "payload": payload},
        )

    def submit_many(self, connection: Connection, work: Work, payloads: Sequence[str]) -> None:
        connection.execute(
            SUBMIT_MANY, {"queue": QUEUE, "handler": work, "payloads": list(payloads)}
        )
        if self._announces:
            connection.execute("select pg_notify('rdq_due', %s)", [QUEUE])

    def drain(self, connection: Connection, batch: int) -> int:
        if connection not in self._set:
            connection.execute(SETTINGS)
            self._set.add(connection)
        held: list[tuple[UUID, UUID, bytes]] = connection.execute(
            CLAIM, [QUEUE, batch], binary=True
        ).fetchall()
        if held:
            connection.execute(COMPLETE, [[task_id for task_id, _, _ in held]])
        return len(held)

    def executions(self, connection: Connection) -> int:
        return self._rdq.executions(connection)

    def bury(self, connection: Connection, count: int) -> None:
        self._rdq.bury(connection, count)

    def redrive_all(self, connection: Connection) -> int:
        redrive_id = uuid4()
        moved = 0
        while count := connection.execute(REDRIVE, [REDRIVE_BATCH, redrive_id]).rowcount:
            moved += count
        return moved
