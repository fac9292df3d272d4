"""SCRAM-SHA-256, the server's side: a client proves that it knows a password, without sending it.

Sources: RFC 5802, RFC 7677; RFC 4013 for what counts as the same text.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import stringprep
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

METHOD = "SCRAM-SHA-256"
ROUNDS = 32_768  # of a verifier that is made here: about 10 ms, for the client as well
ROUNDS_MIN = 4_096  # RFC 7677, section 4
MESSAGE_BYTES_MAX = 4_096  # chosen: a name of 255 bytes and two nonces are far less
KEY_BYTES = 64  # StoredKey and ServerKey, one after the other
_HALF = 32  # a SHA-256
_NONCE_BYTES = 18  # 144 bits; a multiple of three, so that base64 needs no padding
_FIRST_PARTS_MIN = 2  # RFC 5802, section 7: the flag of channel binding, the authorization identity
_FINAL_PARTS_MIN = 3  # RFC 5802, section 7: channel binding, nonce, proof
_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


class ScramError(Exception):
    """A message of a client that is none, or not of this exchange."""


class Verifier(NamedTuple):
    """What is kept of a password: enough to check a proof, not to make one."""

    rounds: int
    salt: bytes
    key: bytes  # of KEY_BYTES


def prepare(text: str) -> str:
    """Return a text normalised by SASLprep, so that equal texts compare equal; unchanged where SASLprep forbids it."""
    if text.isascii():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    is_prohibited = any(is_in(char) for char in normal for is_in in _PROHIBITED)
    has_left_right = any(map(stringprep.in_table_d2, normal))
    has_right_left = any(map(stringprep.in_table_d1, normal))
    is_mixed = has_right_left and (
        has_left_right or not (stringprep.in_table_d1(normal[0]) and stringprep.in_table_d1(normal[-1]))
    )
    return text if is_prohibited or is_mixed else normal


def derive_key(password: bytes, salt: bytes, rounds: int) -> bytes:
    """Return StoredKey and ServerKey of a password; slow on purpose."""
    with contextlib.suppress(UnicodeDecodeError):  # else it is no text, and taken as it is
        password = prepare(password.decode()).encode()
    salted = hashlib.pbkdf2_hmac("sha256", password, salt, rounds)
    return hashlib.sha256(_hmac(salted, b"Client Key")).digest() + _hmac(salted, b"Server Key")


def make_fake(name: str, secret: bytes, rounds: list[int]) -> Verifier:
    """Return what stands in for the verifier of a name that has none: always the same, and no proof fits it."""
    digest = hmac.new(secret, b"salt" + name.encode(), hashlib.sha512).digest()
    return Verifier(rounds[int.from_bytes(digest[16:24]) % len(rounds)], digest[:16], os.urandom(KEY_BYTES))


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ScramError("a value is not base64") from error


def _read(data: bytes) -> list[str]:
    if len(data) > MESSAGE_BYTES_MAX:
        raise ScramError("a message is too long")
    try:
        return data.decode().split(",")
    except UnicodeDecodeError as error:
        raise ScramError("a message is not text") from error


def _value(parts: list[str], index: int, name: str) -> str:
    if index >= len(parts) or not parts[index].startswith(f"{name}="):
        raise ScramError(f"a message has no {name}= where it should")
    return parts[index][2:]


class ScramExchange:
    """One proof. Call `answer_first`, `take_final` and `check`, in this order.

    Args:
        find: Gives the verifier of a user name, also of one that has none.
        nonce: Of the server; None: a new one.
    """

    def __init__(self, find: Callable[[str], Verifier], nonce: str | None = None) -> None:
        self.user = ""
        self.final = b""  # what the server says at last
        self._find = find
        self._own_nonce = nonce or base64.b64encode(os.urandom(_NONCE_BYTES)).decode()
        self.verifier: Verifier | None = None  # by which the proof is checked, once the name is known
        self._nonce = ""
        self._header = ""
        self._signed = ""
        self._proof = b""

    def answer_first(self, data: bytes) -> bytes:
        """Take the client's first message, return the server's.

        Raises:
            ScramError: It is none.
        """
        parts = _read(data)
        if len(parts) < _FIRST_PARTS_MIN or parts[0] not in {"n", "y"}:
            raise ScramError("channel binding is not offered")
        self._header = f"{parts[0]},{parts[1]},"
        bare = parts[2:]
        self.user = _read_name(_value(bare, 0, "n"))
        if parts[1] not in {"", "a=" + bare[0][2:]}:
            raise ScramError("one user may not act for another")
        nonce = _value(bare, 1, "r")
        if not nonce or not all("!" <= char <= "~" for char in nonce):
            raise ScramError("the nonce is empty")
        self._nonce = nonce + self._own_nonce
        self.verifier = self._find(self.user)
        salt = base64.b64encode(self.verifier.salt).decode()
        first = f"r={self._nonce},s={salt},i={self.verifier.rounds}"
        self._signed = f"{','.join(bare)},{first}"
        return first.encode()

    def take_final(self, data: bytes) -> None:
        """Take the client's second message, which holds its proof.

        Raises:
            ScramError: It is none, or not of this exchange.
        """
        parts = _read(data)
        if len(parts) < _FINAL_PARTS_MIN or not parts[-1].startswith("p="):
            raise ScramError("a proof is missing")
        if _decode(_value(parts, 0, "c")).decode(errors="replace") != self._header:
            raise ScramError("the header is another one than at first")
        if not hmac.compare_digest(_value(parts, 1, "r").encode(), self._nonce.encode()):
            raise ScramError("the nonce is another one than at first")
        self._proof = _decode(parts[-1][2:])
        if len(self._proof) != _HALF:
            raise ScramError("the proof has another length")
        self._signed += "," + ",".join(parts[:-1])

    def check(self) -> bool:
        """Return whether the proof is right; `final` is what to answer then."""
        assert self.verifier is not None
        stored, own = self.verifier.key[:_HALF], self.verifier.key[_HALF:]
        signed = self._signed.encode()
        signature = _hmac(stored, signed)
        client_key = bytes(a ^ b for a, b in zip(self._proof, signature, strict=True))
        self.final = b"v=" + base64.b64encode(_hmac(own, signed))
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), stored)


def _read_name(escaped: str) -> str:
    """Return a user name; `=2C` is a comma in it, `=3D` an equals sign."""
    if escaped.replace("=2C", "").replace("=3D", "").count("="):
        raise ScramError("the user name is escaped wrongly")
    name = escaped.replace("=2C", ",").replace("=3D", "=")
    if not name:
        raise ScramError("the user name is empty")
    return prepare(name)
