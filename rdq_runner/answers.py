"""What the answer to a callback means for the task, and what of it is kept.

The status decides as soon as it is there; what happens to the body after it changes nothing. Where
there is no status, it matters whether any of the request had been sent: only then can the receiver
have acted.
"""

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final, Literal, cast

from rdq_runner import retry_after, storable
from rdq_runner.outcomes import ErrorClass, Failure, Outcome, Success
from rdq_runner.storable import Json

Verdict = Literal["SUCCEEDED"] | ErrorClass

BODY_BYTES: Final = 4096
_FIELD_BYTES: Final = 256

# 408, 425, 429 and 503 say that the request was not acted upon; any other 5xx does not, a gateway's
# 502 and 504 least of all: the request was passed on. Redirects are not followed.
_VERDICTS: Final[tuple[tuple[str, Verdict], ...]] = (
    ("2??", "SUCCEEDED"),
    ("408", "TRANSIENT"),
    ("425", "TRANSIENT"),
    ("429", "TRANSIENT"),
    ("503", "TRANSIENT"),
    ("5??", "AMBIGUOUS"),
    ("4??", "PERMANENT"),
    ("3??", "PERMANENT"),
)

_KEPT_FIELDS: Final = ("content-type", "date", "location", "retry-after", "server")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a status means at an endpoint: ``409`` or ``4xx``."""

    status: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an exchange broke off: a kind, as ``connect`` or ``timeout``, and words for people."""

    kind: str
    message: str
    error_class: ErrorClass


@dataclass(slots=True)
class Exchange:
    """What is known of one request and its answer, filled in as it goes on.

    :param seconds: how long it took.
    :param address: that the request was sent to, or that a connection was tried to last.
    :param refused: why the runner did not connect to an address.
    :param sent: whether the request began to be written.
    :param fields: of the answer, by name in lower case, with all values of each.
    """

    seconds: float = 0.0
    address: str | None = None
    refused: str | None = None
    sent: bool = False
    status: int | None = None
    reason: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    body: bytes = b""
    body_ended: bool = False


def rules(documents: Iterable[Mapping[str, str]]) -> tuple[Rule, ...]:
    """Read the rules of an endpoint, as ``rdq.set_endpoint`` has checked them."""
    return tuple(
        Rule(document["status"], cast(Verdict, document["class"])) for document in documents
    )


def verdict(status: int, rules: Sequence[Rule] = ()) -> Verdict:
    """Return what a status means; the first rule that fits it decides.

    A status that HTTP does not know is AMBIGUOUS.
    """
    for rule in rules:
        if fnmatchcase(str(status), rule.status.replace("x", "?")):
            return rule.verdict
    return next(
        (verdict for form, verdict in _VERDICTS if fnmatchcase(str(status), form)), "AMBIGUOUS"
    )


def outcome(
    exchange: Exchange, trouble: Trouble | None, rules: Sequence[Rule], now: datetime
) -> Outcome:
    """Return how the attempt ended.

    :param trouble: what broke the exchange off, if anything did.
    :param now: what a date in Retry-After is compared with where the answer has no Date.
    """
    if exchange.status is None:
        assert trouble, "an exchange without an answer broke off"
        return Failure(
            type=f"http.{trouble.kind}",
            message=storable.text(trouble.message),
            detail=_detail(exchange),
            error_class=trouble.error_class,
        )
    means = verdict(exchange.status, rules)
    if means == "SUCCEEDED":
        return Success()
    return Failure(
        type=f"http.{exchange.status}",
        message=storable.text(f"HTTP {exchange.status} {exchange.reason}".rstrip()),
        detail=_detail(exchange),
        error_class=means,
        retry_after=wait(exchange.fields, now),
    )


def wait(fields: Mapping[str, Sequence[str]], now: datetime) -> float | None:
    """Return the seconds that an answer asks to wait, by its own clock where it tells its time."""
    own_time = next(
        (time for value in fields.get("date", ()) if (time := retry_after.date(value, now))), now
    )
    return retry_after.seconds(fields.get("retry-after", ()), own_time)


def _detail(exchange: Exchange) -> Json:
    detail: dict[str, Json] = {"seconds": round(exchange.seconds, 3), "sent": exchange.sent}
    if exchange.address:
        detail["address"] = exchange.address
    if exchange.status is not None:
        detail["status"] = exchange.status
        detail["headers"] = {
            name: _text(", ".join(exchange.fields[name]), _FIELD_BYTES)
            for name in _KEPT_FIELDS
            if name in exchange.fields
        }
        detail["body"] = _body(exchange)
    return detail


def _body(exchange: Exchange) -> str:
    # What was cut may end within a character: that part of one is left out.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(exchange.body[:BODY_BYTES], final=exchange.body_ended)
    if exchange.body_ended:
        return _text(text, BODY_BYTES)
    # Without the mark there is no telling, where the body was as long as what is kept.
    return _text(text, BODY_BYTES - len(storable.CUT)).removesuffix(storable.CUT) + storable.CUT


def _text(value: str, limit: int) -> str:
    # Control characters are storable, but six bytes long each in JSON: a page of them would take
    # the detail beyond its limit.
    return storable.text(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value), limit)
