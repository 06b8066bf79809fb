"""The contenders of other projects, with their versions."""

from collections.abc import Sequence
from typing import Final

from tests.bench.installations import Node, Python
from tests.bench.peer import Peer

PEERS: Final[Sequence[Peer]] = (
    Peer(
        name="procrastinate",
        module="procrastinate",
        installation=Python(
            ("procrastinate==3.10.0", "psycopg[binary]==3.3.9", "psycopg-pool==3.3.3")
        ),
        drained="""
            /* bench */ select not exists (
              select from procrastinate_jobs where status in ('todo', 'doing')
            )
            """,
        share=0.05,
        keeps="events of each job; no error",
        claims="procrastinate_fetch_job",
    ),
    Peer(
        name="pgqueuer",
        module="pgqueuer",
        installation=Python(("pgqueuer==1.6.0", "asyncpg==0.32.0")),
        drained="/* bench */ select not exists (select from pgqueuer)",
        keeps="a log of every state of a job, with tracebacks; the job is deleted",
        claims="skip locked",
    ),
    Peer(
        name="chancy",
        module="chancy",
        installation=Python(("chancy==0.26.0", "psycopg[binary]==3.3.9", "psycopg-pool==3.3.3")),
        drained="""
            /* bench */ select not exists (
              select from chancy_jobs where state in ('pending', 'running', 'retrying')
            )
            """,
        share=0.2,
        keeps="the job, with all tracebacks in one array",
        claims="skip locked",
    ),
    Peer(
        name="awa",
        module="awa",
        installation=Python(("awa-pg==0.6.9",)),
        # All that was submitted is claimed, each claim is closed, and nothing is put off.
        drained="""
            /* bench */ select not exists (
              select from awa.queue_enqueue_heads e
              join awa.queue_claim_heads c using (queue, priority, enqueue_shard)
              where awa.sequence_next_value(c.seq_name) < awa.sequence_next_value(e.seq_name)
            ) and not exists (select from awa.deferred_jobs) and (
              (select count(*) from awa.lease_claims)
                + (select coalesce(sum(claimed_count), 0) from awa.lease_claim_batches)
            ) <= (
              (select count(*) from awa.lease_claim_closures)
                + (select coalesce(sum(closed_count), 0) from awa.lease_claim_closure_batches)
            )
            """,
        share=0.2,
        keeps="the job, with all errors in one array, each cut to its last frames",
        claims="claim",
    ),
    Peer(
        name="oban",
        module="oban",
        installation=Python(("oban==0.7.0", "psycopg[binary]==3.3.9"), at_least=(3, 12)),
        drained="""
            /* bench */ select not exists (
              select from oban_jobs
              where state in ('available', 'scheduled', 'executing', 'retryable')
            )
            """,
        share=0.1,
        keeps="the job, with all errors in one array",
        claims="skip locked",
    ),
    Peer(
        name="graphile-worker",
        module="graphile_worker",
        installation=Node("graphile-worker@0.18.0"),
        drained="/* bench */ select not exists (select from graphile_worker._private_jobs)",
        keeps="the message of the last error; a job that succeeds is deleted",
        claims="skip locked",
    ),
    Peer(
        name="pg-boss",
        module="pg_boss",
        installation=Node("pg-boss@12.38.0"),
        drained="""
            /* bench */ select not exists (
              select from pgboss.job where state in ('created', 'retry', 'active')
            )
            """,
        keeps="the job, with the last error and its stack",
        claims="skip locked",
    ),
)
