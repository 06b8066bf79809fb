"""pgmq: functions in SQL and no worker, so they are called as rdq's are.

A read hides messages for a while, and counts how often each was read; what is done is deleted, and
nothing of it is kept. There are no failures: a message that is not deleted comes back. The payload
is a string of JSON. Of what a function returns only that is fetched which a worker needs, as from
rdq. Notices are off until they are enabled, and then 250 ms apart at least, as by default; without
that, each submit would wait for the commit of the one before.
"""

from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg.types.json import Jsonb

from tests.bench.contender import Connection, Work
from tests.bench.installations import Python, missing

PACKAGE: Final = "pgmq==1.1.4"
INSTALLATION: Final = Python((PACKAGE,))


class Pgmq:
    """A queue that is not partitioned, with every default."""

    name = "pgmq"

    def version(self) -> str:
        return f"{PACKAGE.replace('==', ' ')} with the SQL of {_sql('VERSION').strip()}"

    def missing(self) -> str | None:
        return missing(INSTALLATION)

    def prepare(self, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(_sql("pgmq.sql").encode())
            connection.execute("select pgmq.create('bench')")

    def announce(self, connection: Connection, on: bool) -> None:
        what = "enable" if on else "disable"
        connection.execute(f"select pgmq.{what}_notify_insert('bench')".encode())

    def submit(self, connection: Connection, work: Work, payload: str) -> None:
        connection.execute("select * from pgmq.send('bench', %s)", [Jsonb(payload)])

    def submit_many(self, connection: Connection, work: Work, payloads: Sequence[str]) -> None:
        connection.execute(
            "select count(*) from pgmq.send_batch('bench', %s)", [[Jsonb(p) for p in payloads]]
        )

    def drain(self, connection: Connection, batch: int) -> int:
        rows = connection.execute(
            "select msg_id, message from pgmq.read('bench', 60, %s)", [batch], binary=True
        ).fetchall()
        ids = [row[0] for row in rows]
        if batch == 1:
            for message_id in ids:
                connection.execute("select pgmq.delete('bench', %s::bigint)", [message_id])
        elif ids:
            connection.execute("select count(*) from pgmq.delete('bench', %s::bigint[])", [ids])
        return len(ids)

    def executions(self, connection: Connection) -> int:
        [(count,)] = connection.execute(
            """
            select (select last_value from pgmq.q_bench_msg_id_seq)
              - (select count(*) from pgmq.q_bench)
            """
        ).fetchall()
        return int(count)


def _sql(name: str) -> str:
    """Return a file of the package, which carries pgmq itself."""
    return INSTALLATION.file(f"pgmq/sql/{name}").read_text()
