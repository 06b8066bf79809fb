"""J3: signatures that the reference library of Standard Webhooks accepts."""

import base64
import hmac
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from rdq_runner.signatures import SecretError, keys, sign

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAYLOAD = ' {"b": 1,  "a": "ü", "a": 2}\r\n'


def test_the_signature_is_that_of_the_specifications_example() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    payload = b'{"test": 2432232314}'
    fields = sign(keys("env:S", {"S": SECRET}), "msg_p5jXN8AQM9LWM0D4loKWxJek", at, payload)
    assert fields == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_receiver_with_the_reference_library_accepts_what_is_signed() -> None:
    fields = sign(keys("env:S", {"S": SECRET}), "id", datetime.now(UTC), PAYLOAD.encode())
    Webhook(SECRET).verify(PAYLOAD.encode(), fields, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(PAYLOAD.encode() + b" ", fields, json_parse=False)


def test_bytes_that_are_no_text_are_signed_as_they_are() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    expected = hmac.digest(b"key", b"id.1614265330.\xff\0 ", "sha256")
    signature = sign([b"key"], "id", at, b"\xff\0 ")["webhook-signature"]
    assert signature == "v1," + base64.b64encode(expected).decode()


def test_while_a_secret_is_replaced_receivers_with_either_one_accept() -> None:
    other = "whsec_" + base64.b64encode(b"another secret of 24 byt").decode()
    fields = sign(keys("env:S", {"S": f"{SECRET} {other}\n"}), "id", datetime.now(UTC), b"x")
    for secret in (SECRET, other):
        Webhook(secret).verify("x", fields, json_parse=False)


def test_without_a_secret_a_message_has_an_id_and_a_time() -> None:
    assert set(sign([], "id", datetime.now(UTC), b"")) == {"webhook-id", "webhook-timestamp"}


def test_padding_may_be_missing() -> None:
    key = b"a key of 25 bytes, not 24"
    encoded = base64.b64encode(key).decode()
    assert encoded.endswith("=")
    assert keys("env:S", {"S": f"whsec_{encoded.rstrip('=')}"}) == [key]


SHORT = "whsec_" + base64.b64encode(b"23 bytes are too few!!!").decode()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "whsec_",
        "hunter2!",
        "whsec_a",
        f"{SECRET} ö",
        SECRET[6:],
        SHORT,
        "hunter2hunter2hunter2hunter2hunter2",
    ],
)
def test_what_is_no_secret_is_refused_by_the_name_of_its_variable(value: str | None) -> None:
    environment = {} if value is None else {"S": value}
    with pytest.raises(SecretError, match="the variable S ") as raised:
        keys("env:S", environment)
    assert str(raised.value) == (
        "the variable S does not hold a secret of the form whsec_ and base64, of at least 24 bytes"
    )


def test_a_value_instead_of_a_reference_is_refused_and_not_repeated() -> None:
    with pytest.raises(SecretError) as raised:
        keys(SECRET, {})
    assert SECRET not in str(raised.value)
