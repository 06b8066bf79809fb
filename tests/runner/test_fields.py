"""A flat object is JSON, of the same values that `json` would write."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdq_runner import storable
from rdq_runner.fields import Written, members
from rdq_runner.outcomes import Failure

texts = st.text(st.characters(exclude_categories=()))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["task", "error_type", "stack", "x"]), values))
def test_fields_are_members_of_an_object_in_ascii(fields: dict[str, Any]) -> None:
    written = members(fields)
    said = {name: value for name, value in fields.items() if value is not None}
    assert json.loads(f"{{{written}}}") == said
    assert written.isascii()
    assert "\n" not in written


def test_a_moment_and_what_json_has_no_word_for_are_text() -> None:
    fields = {"at": datetime(2026, 1, 1, tzinfo=UTC), "of": {1}}
    assert members(fields) == '"at": "2026-01-01 00:00:00+00:00", "of": "{1}"'


@given(st.lists(texts))
def test_text_that_is_kept_with_its_form_is_written_as_any_other(given: list[str]) -> None:
    joined = Written.joined([Written(text) for text in given])
    assert joined == "".join(given)
    assert joined.json == json.dumps("".join(given))


@pytest.mark.parametrize("detail", [None, {"rows": [1, 2.5, "é\ud800\0", None]}, 2**70])
def test_a_failure_is_written_with_all_that_it_says(detail: object) -> None:
    failure = Failure("T", 'say "no"\n', "stack\n", storable.document(detail), "AMBIGUOUS", 1.5)
    document = failure.document()
    read = json.loads(f"{{{members(document)}}}")
    assert {**dict.fromkeys(document), **read} == document
