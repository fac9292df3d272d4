"""Argon2id as others keep passwords, Mosquitto 2.1 among them: `$argon2id$v=19$m=KIB,t=PASSES,p=LANES$salt$hash`.

Source: RFC 9106, and the reference implementation's encoded form.
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

ARGON2 = "$argon2id$"  # begins each of them
KIB_MAX = 256 * 1024  # a hash that asks for more is refused, as of scrypt
WORK_KIB_MAX = 4 * KIB_MAX  # memory times passes: some seconds
LANES_MAX = 64  # chosen: tools write 1 to 4
KEY_BYTES_MIN, SALT_BYTES_MIN = 4, 8  # the algorithm's own
BYTES_MAX = 1_024  # of salt and of key: far more than tools make
MISSING = "argon2id needs pip install 'lmq-gateway[argon2]'"
_FORM = re.compile(r"\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,7}),p=(\d{1,7})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)")


class Argon2Hash(NamedTuple):
    """One of them, taken apart."""

    memory_kib: int
    passes: int
    lanes: int
    salt: bytes
    key: bytes


def parse_argon2(kept: str) -> Argon2Hash:
    """Take a kept hash apart; nothing is hashed.

    Raises:
        ValueError: It is none, checking it would take too much, or the library is not there.
    """
    found = _FORM.fullmatch(kept)
    if found is None:
        raise ValueError("not of the form $argon2id$v=19$m=...,t=...,p=...$salt$hash")
    memory_kib, passes, lanes = (int(found[place]) for place in (1, 2, 3))
    salt, key = (_decode(found[place]) for place in (4, 5))
    is_sound = 0 < lanes <= LANES_MAX and passes > 0 and 8 * lanes <= memory_kib <= KIB_MAX
    is_sound = is_sound and memory_kib * passes <= WORK_KIB_MAX
    if not is_sound or not SALT_BYTES_MIN <= len(salt) <= BYTES_MAX or not KEY_BYTES_MIN <= len(key) <= BYTES_MAX:
        raise ValueError(f"impossible numbers {memory_kib}, {passes}, {lanes}")
    try:
        import argon2.low_level  # noqa: F401, PLC0415 - where there is such a hash
    except ImportError as error:
        raise ValueError(MISSING) from error
    return Argon2Hash(memory_kib, passes, lanes, salt, key)


def write_argon2(kept: Argon2Hash) -> str:
    """Return a hash in the form that `parse_argon2` reads."""
    numbers = f"m={kept.memory_kib},t={kept.passes},p={kept.lanes}"
    return f"{ARGON2}v=19${numbers}${_encode(kept.salt)}${_encode(kept.key)}"


def derive_argon2(password: bytes, kept: Argon2Hash) -> bytes:
    """Return the key of a password, of the length of the kept one; slow on purpose."""
    from argon2.low_level import Type, hash_secret_raw  # noqa: PLC0415 - where there is such a hash

    return hash_secret_raw(
        password,
        kept.salt,
        time_cost=kept.passes,
        memory_cost=kept.memory_kib,
        parallelism=kept.lanes,
        hash_len=len(kept.key),
        type=Type.ID,
    )


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode().rstrip("=")
