"""Users by name, and passwords as they are kept: `scrypt$n$r$p$salt$hash`, or pbkdf2 with SHA-256 or SHA-512."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os

from gateway.auth.permissions import Permissions

SCRYPT_N = 2**14  # with r 8 about 40 ms and 16 MiB a check
SCRYPT_R = 8
SCRYPT_P = 1
SCRYPT_BYTES_MAX = 256 * 2**20  # a hash in the settings that asks for more is refused
PBKDF2_ROUNDS_MAX = 10_000_000


class PasswordHashError(ValueError):
    """A password hash that is not in one of the known forms."""


def hash_password(password: str) -> str:
    """Return a salted scrypt hash of `password`, in the form that settings take."""
    salt = os.urandom(16)
    key = hashlib.scrypt(password.encode(), salt=salt, n=SCRYPT_N, r=SCRYPT_R, p=SCRYPT_P, dklen=32)
    return f"scrypt${SCRYPT_N}${SCRYPT_R}${SCRYPT_P}${_encode(salt)}${_encode(key)}"


def check_password(password: bytes, kept: str) -> bool:
    """Return whether `password` is the one that `kept` was made from; slow on purpose.

    Raises:
        PasswordHashError: `kept` is in no known form.
    """
    kind, *parts = kept.split("$")
    try:
        if kind == "scrypt":
            n, r, p = (int(part) for part in parts[:3])
            salt, key = (_decode(part) for part in parts[3:])
            made = hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, dklen=len(key), maxmem=SCRYPT_BYTES_MAX)
        elif kind in {"pbkdf2-sha256", "pbkdf2-sha512"}:
            rounds = min(int(parts[0]), PBKDF2_ROUNDS_MAX)
            salt, key = (_decode(part) for part in parts[1:])
            made = hashlib.pbkdf2_hmac(kind.removeprefix("pbkdf2-"), password, salt, rounds, len(key))
        else:
            raise PasswordHashError(f"unknown kind of password hash: {kind!r}")
    except (ValueError, OverflowError, MemoryError) as error:
        raise PasswordHashError(f"not a password hash: {error}") from error
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


class User:
    """One user: how the password is checked, and what the user may do."""

    __slots__ = ("kept", "may", "name", "plain")

    def __init__(self, name: str, may: Permissions, *, kept: str = "", plain: bytes | None = None) -> None:
        self.name = name
        self.may = may
        self.kept = kept  # a password hash
        self.plain = plain  # or the password, from the process's environment

    def check(self, password: bytes) -> bool:
        """Return whether `password` is this user's."""
        if self.plain is not None:
            return hmac.compare_digest(self.plain, password)
        return check_password(password, self.kept)
