"""J5: what each status means, and what of an answer is kept."""

import json
from datetime import UTC, datetime

import pytest

from rdq_runner.answers import BODY_BYTES, Exchange, Trouble, outcome, rules, verdict
from rdq_runner.outcomes import Failure, Success
from rdq_runner.storable import CUT, DETAIL_BYTES

NOW = datetime(2026, 11, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("statuses", "means"),
    [
        ([200, 201, 202, 204, 206, 299], "SUCCEEDED"),
        ([300, 301, 302, 303, 304, 307, 308], "PERMANENT"),
        ([400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 451, 499], "PERMANENT"),
        ([408, 425, 429, 503], "TRANSIENT"),
        ([500, 501, 502, 504, 505, 507, 511, 529, 599], "AMBIGUOUS"),
        ([101, 600, 999], "AMBIGUOUS"),
    ],
)
def test_a_status_means(statuses: list[int], means: str) -> None:
    assert {verdict(status) for status in statuses} == {means}


def test_the_first_rule_that_fits_decides_and_the_rest_stays() -> None:
    own = rules(
        [
            {"status": "409", "class": "SUCCEEDED"},
            {"status": "4xx", "class": "TRANSIENT"},
            {"status": "410", "class": "PERMANENT"},
        ]
    )
    assert verdict(409, own) == "SUCCEEDED"
    assert verdict(410, own) == "TRANSIENT"
    assert verdict(500, own) == "AMBIGUOUS"


def failure(exchange: Exchange, trouble: Trouble | None = None) -> Failure:
    """Return the failure that an exchange is."""
    found = outcome(exchange, trouble, (), NOW)
    assert isinstance(found, Failure)
    return found


def test_an_answer_is_kept_with_what_explains_it() -> None:
    found = failure(
        Exchange(
            seconds=1.23456,
            address="192.0.2.1:443",
            sent=True,
            status=503,
            reason="Busy",
            fields={"retry-after": ["7"], "set-cookie": ["secret"], "server": ["x" * 1000]},
            body=b"come back",
            body_ended=True,
        )
    )
    assert (found.type, found.message, found.error_class) == (
        "http.503",
        "HTTP 503 Busy",
        "TRANSIENT",
    )
    assert found.retry_after == 7
    assert isinstance(found.detail, dict)
    headers = found.detail.pop("headers")
    assert isinstance(headers, dict)
    assert set(headers) == {"retry-after", "server"}
    assert found.detail == {
        "seconds": 1.235,
        "address": "192.0.2.1:443",
        "sent": True,
        "status": 503,
        "body": "come back",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\x01\x1b" * 2000,
        b"\xff" * 5000,
        b"\xed\xa0\x80" * 1400,  # a surrogate
        b'"\\\n' * 1400,
        "ü€😀".encode() * 1000,
        b"x" * 4097,
    ],
)
@pytest.mark.parametrize("ended", [True, False])
def test_any_body_is_storable_and_small(body: bytes, ended: bool) -> None:
    kept = body[: BODY_BYTES + 1]
    found = failure(Exchange(sent=True, status=500, body=kept, body_ended=ended))
    assert isinstance(found.detail, dict)
    text = found.detail["body"]
    assert isinstance(text, str)
    assert len(text.encode()) <= BODY_BYTES
    assert "\0" not in text
    assert text.isprintable() or "\n" in text or not text
    assert len(json.dumps(found.detail, ensure_ascii=False).encode()) <= DETAIL_BYTES


def test_a_body_that_is_longer_is_cut_on_a_character_with_a_mark() -> None:
    found = failure(Exchange(sent=True, status=500, body="€".encode() * 2000, body_ended=False))
    assert isinstance(found.detail, dict)
    text = found.detail["body"]
    assert isinstance(text, str)
    assert text.endswith(CUT)
    assert set(text.removesuffix(CUT)) == {"€"}


def test_a_status_decides_whatever_happened_to_the_body() -> None:
    lost = Trouble("lost", "reset", "AMBIGUOUS")
    assert outcome(Exchange(sent=True, status=200), lost, (), NOW) == Success()
    assert failure(Exchange(sent=True, status=429), lost).error_class == "TRANSIENT"


def test_without_a_status_the_trouble_decides() -> None:
    found = failure(Exchange(), Trouble("dns", "does not\0resolve", "TRANSIENT"))
    assert (found.type, found.message) == ("http.dns", "does not\N{REPLACEMENT CHARACTER}resolve")
    assert found.detail == {"seconds": 0.0, "sent": False}
