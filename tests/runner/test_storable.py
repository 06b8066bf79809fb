"""Whatever text an exception has, PostgreSQL takes it, and it is no longer than its limit."""

import json
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from rdq_runner import storable

MARK = "\N{REPLACEMENT CHARACTER}"

texts = st.text(st.characters(exclude_categories=()))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(texts | st.integers(), inner),
    max_leaves=10,
)

same_session = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_session
@given(texts)
def test_any_text_is_stored_as_it_is_sent(db: psycopg.Connection[Any], value: str) -> None:
    storable_text = storable.text(value)
    row = db.execute("select %s::text, %s::jsonb", [storable_text, Jsonb(storable_text)]).fetchone()
    assert row == (storable_text, storable_text)


@same_session
@given(documents)
def test_any_document_is_stored_as_it_is_sent(db: psycopg.Connection[Any], value: Any) -> None:
    written = json.dumps(storable.document(value))
    row = db.execute("select %s::jsonb::text", [written]).fetchone()
    assert row
    assert json.loads(row[0], parse_int=float) == json.loads(written, parse_int=float)


@given(texts, st.integers(min_value=20, max_value=200))
def test_text_is_cut_to_its_limit_in_bytes_and_says_so(value: str, limit: int) -> None:
    result = storable.text(value * 10, limit)
    assert len(result.encode()) <= limit
    whole = "".join(MARK if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in value * 10)
    if len(whole.encode()) <= limit:
        assert result == whole
    else:
        assert result.endswith(storable.CUT)
        kept = result.removesuffix(storable.CUT)
        assert whole.startswith(kept)
        # No more is lost than the mark takes, and a part of one character.
        assert len(kept.encode()) > limit - len(storable.CUT) - 4


def test_what_cannot_be_stored_leaves_a_visible_mark() -> None:
    assert storable.text("a\0b\ud800c") == f"a{MARK}b{MARK}c"


def test_a_long_stack_keeps_its_beginning_and_its_end() -> None:
    lines = [f"line {number:06}\n" for number in range(20_000)]
    result = storable.stack(lines)
    assert len(result.encode()) <= storable.STACK_BYTES
    assert result.startswith("line 000000\nline 000001\n")
    assert result.endswith("line 019998\nline 019999\n")
    assert storable.CUT in result
    assert len(result.encode()) > 0.95 * storable.STACK_BYTES


def test_a_short_stack_is_kept_whole() -> None:
    assert storable.stack(["one\n", "two\n"]) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (float("nan"), "nan"),
        (10**20, "100000000000000000000"),
        (10**5000, "<int>"),
        (b"\xff", r"b'\xff'"),
        ({1}, [1]),
    ],
    ids=type,
)
def test_what_json_has_no_word_for_becomes_text_or_a_list(value: object, stored: object) -> None:
    assert storable.document({"value": value}) == {"value": stored}


def test_a_large_or_deep_document_keeps_the_beginning_of_its_text() -> None:
    large = storable.document({"rows": ["x" * 100] * 1000})
    assert isinstance(large, dict)
    assert str(large["cut by rdq"]).startswith('{"rows": ["xxx')
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert storable.document(deep[0][0]) is not None
