"""Users by name, and passwords as they are kept: `scrypt$n$r$p$salt$hash`, or pbkdf2 with SHA-256 or SHA-512."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import NamedTuple

from gateway.auth.permissions import Permissions

SCRYPT_N = 2**14  # with r 8 about 40 ms and 16 MiB a check
SCRYPT_R = 8
SCRYPT_P = 1
SCRYPT_BYTES_MAX = 256 * 2**20  # a hash in the settings that asks for more is refused
PBKDF2_ROUNDS_MAX = 10_000_000
_SCRYPT = "scrypt"
_SALT_BYTES = 16
_KEY_BYTES = 32
_NUMBERS = {_SCRYPT: 3, "pbkdf2-sha256": 1, "pbkdf2-sha512": 1}  # how many stand before the salt


class PasswordHashError(ValueError):
    """A password hash that is not in one of the known forms."""


def hash_password(password: str) -> str:
    """Return a salted scrypt hash of `password`, in the form that settings take."""
    salt = os.urandom(_SALT_BYTES)
    key = hashlib.scrypt(password.encode(), salt=salt, n=SCRYPT_N, r=SCRYPT_R, p=SCRYPT_P, dklen=_KEY_BYTES)
    return _write_scrypt(salt, key)


def _write_scrypt(salt: bytes, key: bytes) -> str:
    return f"{_SCRYPT}${SCRYPT_N}${SCRYPT_R}${SCRYPT_P}${_encode(salt)}${_encode(key)}"


class PasswordHash(NamedTuple):
    """A kept password hash, taken apart."""

    kind: str
    numbers: tuple[int, ...]
    salt: bytes
    key: bytes


def parse_hash(kept: str) -> PasswordHash:
    """Take a kept hash apart; quick, since nothing is hashed.

    Raises:
        PasswordHashError: `kept` is in no known form, or checking it would take too much.
    """
    kind, *parts = kept.split("$")
    count = _NUMBERS.get(kind)
    if count is None:
        # What it is stays unsaid: it may well be the password itself.
        raise PasswordHashError("of no known kind; lmq hash-password prints one")
    try:
        numbers = tuple(int(part) for part in parts[:count])
        salt, key = (_decode(part) for part in parts[count:])
    except ValueError as error:
        raise PasswordHashError(f"not a password hash: {error}") from error
    if min(numbers) < 1 or not (_is_scrypt(*numbers) if kind == _SCRYPT else numbers[0] <= PBKDF2_ROUNDS_MAX):
        raise PasswordHashError(f"not a password hash: impossible numbers {'$'.join(parts[:count])}")
    return PasswordHash(kind, numbers, salt, key)


def _is_scrypt(n: int, r: int, p: int) -> bool:
    return 128 * r * (n + p + 2) <= SCRYPT_BYTES_MAX and 1 < n < 1 << 16 * r and n & (n - 1) == 0


def check_password(password: bytes, kept: str) -> bool:
    """Return whether `password` is the one that `kept` was made from; slow on purpose.

    Raises:
        PasswordHashError: `kept` is in no known form.
    """
    kind, numbers, salt, key = parse_hash(kept)
    if kind == _SCRYPT:
        n, r, p = numbers
        made = hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, dklen=len(key), maxmem=SCRYPT_BYTES_MAX)
    else:
        made = hashlib.pbkdf2_hmac(kind.removeprefix("pbkdf2-"), password, salt, numbers[0], len(key))
    return hmac.compare_digest(made, key)


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decode(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    if not raw:
        raise ValueError("an empty part")
    return raw


def make_decoy(kept: str) -> str:
    """Return a hash that no password is known for, and that takes as long to check as `kept` does."""
    kind, numbers, salt, key = parse_hash(kept)
    parts = [kind, *(str(number) for number in numbers), _encode(os.urandom(len(salt))), _encode(os.urandom(len(key)))]
    return "$".join(parts)


def make_usual_decoy() -> str:
    """Return a decoy for a hash that `hash_password` makes; quick, since nothing is hashed."""
    return _write_scrypt(os.urandom(_SALT_BYTES), os.urandom(_KEY_BYTES))


class User:
    """One user: how the password is kept, and what the user may do."""

    __slots__ = ("kept", "may", "name")

    def __init__(self, name: str, may: Permissions, kept: str) -> None:
        self.name = name
        self.may = may
        self.kept = kept  # a password hash

    def check(self, password: bytes) -> bool:
        """Return whether `password` is this user's; slow on purpose."""
        return check_password(password, self.kept)
