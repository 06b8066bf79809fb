"""Whatever a handler says can be recorded, and the task and its neighbours go on."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rdq_runner import storable
from tests.model.profile import run

UNSTORABLE = dict.fromkeys((0, *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}")
MARK = "[cut by rdq]"
LIMITS = {"error_type": 255, "message": 4096, "stack": 65536}

ANY_TEXT = st.text(st.characters(exclude_categories=()))
LONG_TEXT = st.builds(lambda text, times: text * times, ANY_TEXT, st.sampled_from([1, 300, 9000]))
STORED_TEXT = st.text(st.characters(exclude_characters="\0"))
LONG_STORED_TEXT = st.builds(
    lambda text, times: text * times, STORED_TEXT, st.sampled_from([1, 1, 300, 9000])
)
DETAIL = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(),
    lambda children: st.lists(children) | st.dictionaries(ANY_TEXT | st.integers(), children),
)


class Failure(NamedTuple):
    """What is told of a failure, or recorded."""

    error_type: str
    message: str
    stack: str
    detail: Any


@pytest.fixture
def queue(db: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """A session in a database that has the queue ``q``.

    What failed in one example does not come again in a later one, however long all of them take.
    """
    db.execute("""select rdq.create_queue('q', '{"ladder": ["1 year"], "error_rules": [
        {"match": "*%_\\\\*", "class": "PERMANENT"}, {"match": "*", "class": "TRANSIENT"}]}')""")
    return db


def claim(db: psycopg.Connection[Any], count: int) -> tuple[Sequence[UUID], Sequence[UUID]]:
    for _ in range(count):
        db.execute("select rdq.submit('q', 'h', 'payload'::text)")
    rows = db.execute(
        "select task_id, claim_token from rdq.claim('{q}', 'worker', %s)", [count]
    ).fetchall()
    return [row[0] for row in rows], [row[1] for row in rows]


def recorded(db: psycopg.Connection[Any], task_id: UUID) -> Failure:
    """Return the one attempt of a task that has come to an end or waits."""
    status = db.execute("select status from rdq.tasks where task_id = %s", [task_id]).fetchone()
    assert status in (("PENDING",), ("DEAD",))
    cursor = db.cursor(row_factory=class_row(Failure))
    [attempt] = cursor.execute(
        "select error_type, message, stack, detail from rdq.history(%s) where outcome = 'FAILED'",
        [task_id],
    )
    return attempt


@run(150)
@given(
    failures=st.lists(
        st.builds(Failure, ANY_TEXT, LONG_TEXT, LONG_TEXT, DETAIL), min_size=1, max_size=3
    )
)
def test_whatever_a_handler_says_is_recorded(
    queue: psycopg.Connection[Any], failures: list[Failure]
) -> None:
    told = [
        {
            "type": storable.text(failure.error_type, 255),
            "message": storable.text(failure.message),
            "stack": storable.stack(failure.stack.splitlines(keepends=True)),
            "detail": storable.document(failure.detail),
        }
        for failure in failures
    ]
    ids, tokens = claim(queue, len(failures) + 1)
    queue.execute(
        "select rdq.report(%s, %s, %s::jsonb[])",
        [ids, tokens, [*(Jsonb(failure) for failure in told), None]],
    )
    for task_id, failure in zip(ids, failures, strict=False):
        attempt = recorded(queue, task_id)
        check(attempt.error_type, failure.error_type.translate(UNSTORABLE), LIMITS["error_type"])
        check(attempt.message, failure.message.translate(UNSTORABLE), LIMITS["message"])
        assert len(attempt.stack.encode()) <= LIMITS["stack"]
    neighbour = queue.execute("select status from rdq.tasks where task_id = %s", [ids[-1]])
    assert neighbour.fetchone() == ("SUCCEEDED",)


@run(100)
@given(failure=st.builds(Failure, *[LONG_STORED_TEXT] * 3, st.none() | LONG_STORED_TEXT))
def test_whatever_a_worker_in_sql_says_is_recorded(
    queue: psycopg.Connection[Any], failure: Failure
) -> None:
    [task_id], [token] = claim(queue, 1)
    queue.execute(
        "select rdq.fail(%s, %s, %s, %s, %s, to_jsonb(%s::text))", [task_id, token, *failure]
    )
    attempt = recorded(queue, task_id)
    for name, limit in LIMITS.items():
        check(getattr(attempt, name), getattr(failure, name), limit)
    if failure.detail is not None and len(failure.detail) < 2000:
        assert attempt.detail == failure.detail


def check(kept: str, told: str, limit: int) -> None:
    """Check that a text was kept, or as much of it as its limit allows with a mark."""
    if len(told.encode()) <= limit:
        assert kept == told
    else:
        assert limit - 50 < len(kept.encode()) <= limit
        beginning, _, rest = kept.rpartition(MARK)
        assert not rest
        assert told.startswith(beginning.removesuffix("\n"))
