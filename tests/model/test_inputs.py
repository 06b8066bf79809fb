"""Any input is taken or refused in rdq's own words, and what was taken can be worked on."""

from datetime import timedelta
from typing import Any

import psycopg
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.model.profile import run

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NUMBERS = (
    st.integers()
    | st.sampled_from([0, 1, -1, 2**31, 2**63, 10**30, 10**400, 18446744073769.551616])
    | st.floats(allow_nan=False, allow_infinity=False)
)
SPANS = st.sampled_from(
    [
        "1 second",
        "1e9",
        "-1 day",
        "infinity",
        "1 month",
        "10 years",
        "178000000 years",
        "P1Y",
        "",
        "forever",
        "0.3 microseconds",
        "1 day ago",
        "999999999999999999999999",
        "NaN",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | SPANS | TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3),
    max_leaves=6,
)
CLASSES = st.sampled_from(["TRANSIENT", "AMBIGUOUS", "PERMANENT"])
RULES = st.lists(st.fixed_dictionaries({"match": TEXT, "class": CLASSES}), max_size=3)
COUNTS = st.integers(1, 10_000)
SPAN = st.floats(1, 3e8) | st.sampled_from(["1 second", "1 month", "P1Y", "0.2 seconds", "9 years"])
WAIT = SPAN | st.sampled_from([0, 1e-9, "0.3 microseconds"])
VALID_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("max_attempts", "ambiguous_attempts", "vanish_limit"), COUNTS),
        "max_releases": st.integers(0, 10_000),
        "max_payload_bytes": st.integers(7, 2**28),
        **dict.fromkeys(("backoff_base", "backoff_cap"), WAIT),
        "backoff_factor": st.floats(1, 1000),
        "ladder": st.lists(WAIT, min_size=1, max_size=4) | st.none(),
        "jitter": st.floats(0, 1),
        "lease": st.floats(0.1, 2592000),
        **dict.fromkeys(("handler_timeout", "give_up_after"), SPAN | st.none()),
        **dict.fromkeys(("keep_succeeded", "keep_dead"), WAIT | st.just("forever")),
        "error_rules": RULES,
        "notify": st.booleans(),
    },
)
SETTINGS = [
    "max_attempts",
    "ambiguous_attempts",
    "vanish_limit",
    "max_releases",
    "max_payload_bytes",
    "backoff_base",
    "backoff_cap",
    "backoff_factor",
    "ladder",
    "jitter",
    "lease",
    "handler_timeout",
    "give_up_after",
    "keep_succeeded",
    "keep_dead",
    "error_rules",
    "notify",
    "queue",
    "paused_at",
]

TIMES = st.sampled_from(
    [
        "2030-01-01T00:00:00Z",
        "1970-01-01",
        "9999-12-31",
        "294276-12-31 23:59:59.999999Z",
        "infinity",
        "-infinity",
        "4714-11-24 BC",
        "now",
        "tomorrow",
        "",
        "soon",
        "292277026596-01-01",
    ]
)
PAST_TIMES = st.sampled_from(["1970-01-01", "4000-01-01 BC", "2020-02-29T12:00:00+01:00", "epoch"])
FAILURE = st.fixed_dictionaries(
    {},
    optional={
        "type": JSON,
        "message": JSON,
        "stack": JSON,
        "detail": JSON,
        "at": PAST_TIMES,
        "class": CLASSES,
    },
)
VALID_TASK = st.fixed_dictionaries(
    {"handler": st.sampled_from(["h", "7.b-c_d"])},
    optional={
        "content_type": st.just("text/plain"),
        "headers": st.dictionaries(TEXT.map("x".__add__), TEXT, max_size=3),
        "run_at": PAST_TIMES | st.just("2030-01-01T00:00:00Z"),
        "give_up_at": st.sampled_from(["2031-01-01T00:00:00Z", "9999-12-31"]),
        "max_attempts": COUNTS,
        "dedupe_key": st.sampled_from(["a", "b"]) | TEXT.map("x".__add__),
        "handler_version": TEXT,
        "task_id": st.uuids().map(str),
        "error": FAILURE,
    },
).flatmap(
    lambda task: st.one_of(
        st.just({**task, "payload_base64": "aGVsbG8="}),
        JSON.map(lambda payload: {**task, "payload": payload}),
    )
)
FIELDS = [
    "handler",
    "payload",
    "payload_base64",
    "content_type",
    "headers",
    "run_at",
    "give_up_at",
    "max_attempts",
    "dedupe_key",
    "handler_version",
    "task_id",
    "error",
    "unknown",
]


def perturbed(
    valid: st.SearchStrategy[dict[str, Any]], keys: list[str]
) -> st.SearchStrategy[dict[str, Any]]:
    """Put something else in the place of one value, in half of the cases."""
    values = JSON | TIMES | SPANS | st.sampled_from(["", "*", {"rdq.x": "y"}, {"class": "NONE"}])
    change = st.dictionaries(st.sampled_from(keys), values, max_size=1)
    return st.builds(lambda base, other: {**base, **other}, valid, change)


@run(250)
@given(settings=perturbed(VALID_SETTINGS, SETTINGS) | JSON)
@example({"backoff_base": 18446744073769.551616})
@example({"ladder": [["1 minute"]]})
def test_settings_are_taken_or_refused_and_a_failure_in_the_queue_is_recorded(
    db: psycopg.Connection[Any], settings: Any
) -> None:
    db.execute("truncate rdq.queue, rdq.task, rdq.due, rdq.lease, rdq.dead, rdq.attempt")
    refusal = refused(db, "select rdq.create_queue('q', %s)", Jsonb(settings))
    if refusal:
        assert refusal.sqlstate == "RD002", refusal
        assert refusal.diag.message_hint
        return
    refusal = refused(db, "select rdq.submit('q', 'h', 'payload'::text)")
    if refusal:
        assert refusal.sqlstate == "RD006", refusal
        assert settings["max_payload_bytes"] < len("payload")
        return
    for error_class in (None, "TRANSIENT"):
        rows = db.execute(
            "select f.status from rdq.claim('{q}', 'w') c "
            "cross join rdq.fail(c.task_id, c.claim_token, 'E', 'm', error_class => %s) f",
            [error_class],
        ).fetchall()
        assert set(rows) <= {("PENDING",), ("DEAD",)}
        db.execute("update rdq.due set due_at = now()")
    db.execute("select rdq.tick()")


@run(400)
@given(tasks=st.one_of(*[st.lists(perturbed(VALID_TASK, FIELDS), max_size=4)] * 4, JSON))
def test_tasks_are_taken_or_refused_and_can_be_worked_on(
    db: psycopg.Connection[Any], tasks: Any
) -> None:
    db.execute(
        "truncate rdq.queue, rdq.task, rdq.due, rdq.lease, rdq.dead, rdq.attempt, rdq.dedupe"
    )
    db.execute("""select rdq.create_queue('q', '{"give_up_after": "1 day", "backoff_base": 0}')""")
    refusal = refused(db, "select rdq.submit_many('q', %s)", Jsonb(tasks))
    if refusal:
        assert refusal.sqlstate in ("RD002", "RD006"), refusal
        message = str(refusal.diag.message_primary)
        assert "tasks[" in message or not isinstance(tasks, list), message
        assert db.execute("select from rdq.task").fetchall() == []
        return
    for _ in range(2):
        live_again(db)


def refused(db: psycopg.Connection[Any], query: str, *parameters: object) -> psycopg.Error | None:
    """Make a call; return the error that refused it."""
    try:
        db.execute(query.encode(), parameters)
    except psycopg.Error as error:
        return error
    return None


def live_again(db: psycopg.Connection[Any]) -> None:
    """Fail what is there for good, let time pass, and redrive it."""
    db.execute("update rdq.due set due_at = now()")
    db.execute("""
        select rdq.fail(c.task_id, c.claim_token, 'E', error_class => 'PERMANENT')
        from rdq.claim('{q}', 'w', 10) c
        """)
    db.execute("update rdq.task set created_at = created_at - interval '1 hour'")
    db.execute("select rdq.redrive_where('q')")
    assert db.execute("select from rdq.doctor() where severity = 'error'").fetchall() == []


DELAYS = "select rdq._delay(n, %s, %s, %s, %s::interval[]) from unnest(%s::int[]) n"
LENGTHS = st.timedeltas(timedelta(), timedelta(days=3652))
ATTEMPTS = st.lists(st.integers(-1, 2**31 - 1), max_size=5).map(
    lambda more: sorted({1, 2, 3, 16, 31, 32, 63, 64, 1023, 1024, 32767, 32768, 100_000, *more})
)


@run(300)
@given(
    base=LENGTHS,
    factor=st.floats(1, 1000) | st.just(1.0),
    cap=LENGTHS,
    attempts=ATTEMPTS,
)
@example(timedelta(microseconds=1), 1.0000001, timedelta(days=3652), [1, 2**31 - 1])
def test_a_delay_grows_from_the_base_to_the_cap(
    db: psycopg.Connection[Any],
    base: timedelta,
    factor: float,
    cap: timedelta,
    attempts: list[int],
) -> None:
    rows = db.execute(DELAYS, [base, factor, cap, None, attempts]).fetchall()
    delays = [delay for (delay,) in rows]
    assert delays == sorted(delays)
    assert all(timedelta() <= delay <= cap for delay in delays)
    for attempt, delay in zip(attempts, delays, strict=True):
        step = max(attempt, 1) - 1
        if step * factor < 600:
            wanted = min(cap.total_seconds(), base.total_seconds() * factor**step)
            assert abs(delay.total_seconds() - wanted) <= 2e-6 + wanted * 1e-9


@run(100)
@given(ladder=st.lists(LENGTHS, min_size=1, max_size=6), attempts=ATTEMPTS)
def test_an_explicit_ladder_is_climbed_and_its_last_rung_repeats(
    db: psycopg.Connection[Any], ladder: list[timedelta], attempts: list[int]
) -> None:
    rows = db.execute(DELAYS, ["1 minute", 2, "1 hour", ladder, attempts]).fetchall()
    rungs = [ladder[min(max(attempt, 1), len(ladder)) - 1] for attempt in attempts]
    assert [delay for (delay,) in rows] == rungs


@run(100)
@given(delay=LENGTHS, jitter=st.floats(0, 1).map(lambda jitter: round(jitter, 6)))
def test_jitter_stays_in_its_band(
    db: psycopg.Connection[Any], delay: timedelta, jitter: float
) -> None:
    rows = db.execute(
        "select rdq._jittered(%s, %s) from generate_series(1, 20)", [delay, jitter]
    ).fetchall()
    slack = timedelta(microseconds=1)
    assert all(
        delay * (1 - jitter) - slack <= drawn <= delay * (1 + jitter) + slack for (drawn,) in rows
    )


def test_many_tasks_with_one_key_that_die_at_once_are_all_taken(
    db: psycopg.Connection[Any],
) -> None:
    db.execute("select rdq.create_queue('q')")
    task = {"handler": "h", "payload": {}, "dedupe_key": "a", "error": {"class": "PERMANENT"}}
    ids = db.execute("select rdq.submit_many('q', %s)", [Jsonb([task] * 1000)]).fetchall()
    assert len(set(ids)) == 1000
    assert db.execute("select count(*) from rdq.dead").fetchall() == [(1000,)]
