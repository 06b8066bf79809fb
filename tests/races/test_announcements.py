"""What is announced to whoever listens, when a transaction has been committed."""

import json

from tests.races.sessions import Session

PERMANENT = """
select rdq.submit(%s, 'h', 'x'::text, error => '{"type": "Error", "class": "PERMANENT"}')
"""


def test_a_death_is_announced_only_where_the_queue_notifies(
    first: Session, second: Session
) -> None:
    first.execute("select rdq.create_queue('silent', '{\"notify\": false}')")
    second.execute("listen rdq_dead")
    first.value(PERMANENT, "silent")
    with first.transaction():
        first.value(PERMANENT, "silent")
        first.value(PERMANENT, "q")
    # What came before it would be there by now: announcements keep the order of the commits.
    told = [json.loads(n.payload) for n in second.connection.notifies(timeout=20, stop_after=1)]
    told += [json.loads(n.payload) for n in second.connection.notifies(timeout=0.2)]
    assert [notice["queue"] for notice in told] == ["q"]
    assert first.value("select count(*) from rdq.dead") == 3
