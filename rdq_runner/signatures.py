"""Signatures of callbacks, after Standard Webhooks (its specification, "Signature scheme").

The reference library signs text; a payload is bytes, and need not be text, so the few lines of the
scheme are here. Its tests are receivers that verify with the reference library.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

_REFERENCE: Final = "env:"
_PREFIX: Final = "whsec_"

# Standard Webhooks, "Signature scheme": from 24 bytes to 64.
LEAST_KEY_BYTES: Final = 24


class SecretError(Exception):
    """This process cannot sign for the endpoint; the message says why, and holds no secret."""


def keys(reference: str, environment: Mapping[str, str]) -> list[bytes]:
    """Return the keys that a reference ``env:NAME`` leads to.

    The variable holds a secret, ``whsec_`` and base64, or several with blanks between them while
    one replaces the other: receivers accept a request that is signed with any key that they know.

    Whoever may set an endpoint chooses the variable. So what is no secret of this form signs
    nothing, and the error is the same whether the variable is set or not: neither a password, nor
    whether there is one, can be found out by a signature.

    :raises SecretError: there is no such variable, or what it holds is no secret.
    """
    name = reference.removeprefix(_REFERENCE)
    if name == reference:
        raise SecretError("the secret of the endpoint is not a reference env:NAME")
    found = [_key(secret) for secret in environment.get(name, "").split()]
    if not found or not all(found):
        raise SecretError(
            f"the variable {name} does not hold a secret of the form whsec_ and base64, of at least"
            f" {LEAST_KEY_BYTES} bytes"
        )
    return found


def sign(keys: list[bytes], message_id: str, sent_at: datetime, payload: bytes) -> dict[str, str]:
    """Return the header fields that identify and sign a message sent at a time."""
    timestamp = str(int(sent_at.timestamp()))
    signed = b".".join((message_id.encode(), timestamp.encode(), payload))
    signatures = (base64.b64encode(hmac.digest(key, signed, sha256)).decode() for key in keys)
    fields = {"webhook-id": message_id, "webhook-timestamp": timestamp}
    if keys:
        fields["webhook-signature"] = " ".join(f"v1,{signature}" for signature in signatures)
    return fields


def _key(secret: str) -> bytes:
    """Return the key of a secret, empty if it is none."""
    encoded = secret.removeprefix(_PREFIX)
    try:
        # Strict, unlike the reference library: that reads a key out of any text at all.
        key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
    return key if encoded != secret and len(key) >= LEAST_KEY_BYTES else b""
