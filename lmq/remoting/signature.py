"""How a client proves which user sends a request: three header fields, of which the last is made with a secret.

`AccessKey` names the user, `Signature` is the HMAC-SHA1, in Base64, of all other fields' values, in the order of their
names, and the body. There is no number or moment in it that would tell a request from one that is sent again.

Source: docs/protocols/rocketmq.md, "Logins".
"""

from __future__ import annotations

import base64
import hmac
from typing import NamedTuple

from lmq.remoting.commands import Command

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
# What some clients send without having signed it: a token that we do not know, and old ones the mark of a query by key.
UNSIGNED = ("SecurityToken", "_UNIQUE_KEY_QUERY")


class AccessKeys(NamedTuple):
    """A user, and the secret that it shares with the broker."""

    access_key: str
    secret_key: str


def sign(command: Command, keys: AccessKeys) -> None:
    """Add the fields that prove that the user sends this; nothing may be changed after it."""
    command.ext[ACCESS_KEY] = keys.access_key
    command.ext[SIGNATURE] = _make(command, keys.secret_key.encode()).decode()


def is_signed_with(command: Command, secret: bytes) -> bool:
    """Return whether the sender of a request has the secret, or repeats a request of one that has it."""
    said = command.ext.get(SIGNATURE, "").encode()
    if hmac.compare_digest(_make(command, secret), said):
        return True
    for name in UNSIGNED:
        if name in command.ext and hmac.compare_digest(_make(command, secret, without=name), said):
            return True
    return False


def _make(command: Command, secret: bytes, without: str = SIGNATURE) -> bytes:
    ext = command.ext
    fields = "".join([ext[name] for name in sorted(ext) if name not in {SIGNATURE, without}])
    return base64.b64encode(hmac.digest(secret, b"".join((fields.encode(), command.body)), "sha1"))
