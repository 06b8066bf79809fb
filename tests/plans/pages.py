"""How many pages of rdq's own tables and indexes a session touches.

The pages of the catalogue are not among them. When DDL in any database of the server has overrun
its caches, a session reads the catalogue again, up to two thousand pages, in whichever call is
next.
"""

from typing import Any

import psycopg

_SO_FAR = """
select sum(
  coalesce(heap_blks_hit + heap_blks_read, 0) + coalesce(idx_blks_hit + idx_blks_read, 0)
  + coalesce(toast_blks_hit + toast_blks_read, 0) + coalesce(tidx_blks_hit + tidx_blks_read, 0)
)::bigint
from pg_statio_user_tables
where schemaname = 'rdq'
"""


def so_far(connection: psycopg.Connection[Any]) -> int:
    """Count what the database's sessions have touched and reported, this one to the last page."""
    connection.execute("select pg_stat_force_next_flush()")
    [(pages,)] = connection.execute(_SO_FAR).fetchall()
    return int(pages)
