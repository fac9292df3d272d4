"""Users by name, and passwords as they are kept.

`scrypt$n$r$p$salt$hash`; pbkdf2 with SHA-256 or SHA-512; or `scram-sha-256$rounds$salt$keys`, which serves SCRAM too.
Hashes of others are read as they are: mosquitto's (`$argon2id$…`, `$7$…`, `$6$…`), and RabbitMQ's as
`rabbitmq-sha256$salt$hash`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import NamedTuple

from gateway.auth import scram
from gateway.auth.argon2_hashes import ARGON2, Argon2Hash, derive_argon2, parse_argon2, write_argon2
from gateway.auth.rule_book import Account
from gateway.auth.scram import Verifier

SCRYPT_N = 2**14  # with r 8 about 40 ms and 16 MiB a check
SCRYPT_R = 8  # RFC 7914, section 2
SCRYPT_P = 1  # RFC 7914, section 2
SCRYPT_BYTES_MAX = 256 * 2**20  # a hash in the settings that asks for more is refused
PBKDF2_ROUNDS_MAX = 10_000_000  # 3 s of a core with SHA-256, 8 s with SHA-512; a hash that asks for more is refused
_SCRYPT = "scrypt"
_SALT_BYTES = 16  # as Python's documentation advises
_KEY_BYTES = 32  # 256 bits
_SCRAM = "scram-sha-256"
_ARGON2 = "argon2id"
_SALTED = ("rabbitmq-sha256", "rabbitmq-sha512", "mosquitto-sha512")  # quick ones of other brokers
_NUMBERS = {_SCRYPT: 3, "pbkdf2-sha256": 1, "pbkdf2-sha512": 1, _SCRAM: 1, **dict.fromkeys(_SALTED, 0)}
"""How many numbers stand before the salt."""
_OWN_FORMS = {"$7$": "pbkdf2-sha512$", "$6$": "mosquitto-sha512$"}
_RABBITMQ_SALT_BYTES = 4  # RabbitMQ's hashes begin with a salt of 32 bits
_RABBITMQ_SIZES = {
    "rabbit_password_hashing_sha256": ("rabbitmq-sha256", 32),
    "rabbit_password_hashing_sha512": ("rabbitmq-sha512", 64),
}


class PasswordHashError(ValueError):
    """A password hash that is not in one of the known forms."""


def hash_password(password: str) -> str:
    """Return a salted scrypt hash of `password`, in the form that settings take."""
    salt = os.urandom(_SALT_BYTES)
    key = hashlib.scrypt(password.encode(), salt=salt, n=SCRYPT_N, r=SCRYPT_R, p=SCRYPT_P, dklen=_KEY_BYTES)
    return _write_scrypt(salt, key)


def _write_scrypt(salt: bytes, key: bytes) -> str:
    return f"{_SCRYPT}${SCRYPT_N}${SCRYPT_R}${SCRYPT_P}${_encode(salt)}${_encode(key)}"


def hash_for_scram(password: str, rounds: int = scram.ROUNDS) -> str:
    """Return what SCRAM needs of `password`, in the form that settings take; plain logins go by it, too."""
    salt = os.urandom(16)
    return f"{_SCRAM}${rounds}${_encode(salt)}${_encode(scram.derive_key(password.encode(), salt, rounds))}"


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
    if kept.startswith(ARGON2):
        try:
            found = parse_argon2(kept)
        except ValueError as error:
            raise PasswordHashError(f"not a password hash: {error}") from error
        return PasswordHash(_ARGON2, (found.memory_kib, found.passes, found.lanes), found.salt, found.key)
    start = kept[:3]
    kind, *parts = (_OWN_FORMS.get(start, start) + kept[3:]).split("$")
    count = _NUMBERS.get(kind)
    if count is None:
        # What it is stays unsaid: it may well be the password itself.
        raise PasswordHashError("of no known kind; lmq hash-password prints one")
    try:
        numbers = tuple(int(part) for part in parts[:count])
        salt, key = (_decode(part) for part in parts[count:])
    except ValueError as error:
        raise PasswordHashError(f"not a password hash: {error}") from error
    if kind == _SCRAM and (numbers[0] < scram.ROUNDS_MIN or len(key) != scram.KEY_BYTES):
        raise PasswordHashError(f"no keys for SCRAM with at least {scram.ROUNDS_MIN} rounds")
    if kind in _SALTED:
        return PasswordHash(kind, (), salt, key)
    if min(numbers) < 1 or not (_is_scrypt(*numbers) if kind == _SCRYPT else numbers[0] <= PBKDF2_ROUNDS_MAX):
        raise PasswordHashError(f"not a password hash: impossible numbers {'$'.join(parts[:count])}")
    return PasswordHash(kind, numbers, salt, key)


def _as_argon2(numbers: tuple[int, ...], salt: bytes, key: bytes) -> Argon2Hash:
    memory_kib, passes, lanes = numbers
    return Argon2Hash(memory_kib, passes, lanes, salt, key)


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
    elif kind == _ARGON2:
        made = derive_argon2(password, _as_argon2(numbers, salt, key))
    elif kind in _SALTED:
        whole = password + salt if kind.startswith("mosquitto") else salt + password
        made = hashlib.new(kind.partition("-")[2], whole).digest()
    elif kind == _SCRAM:
        made = scram.derive_key(password, salt, numbers[0])
    else:
        made = hashlib.pbkdf2_hmac(kind.removeprefix("pbkdf2-"), password, salt, numbers[0], len(key))
    return hmac.compare_digest(made, key)


def read_rabbitmq_hash(text: str, algorithm: str) -> str:
    """Return a hash of RabbitMQ's (base64 of salt and digest) in the form that is kept here.

    Raises:
        PasswordHashError: It is none, or of another algorithm.
    """
    if algorithm not in _RABBITMQ_SIZES:
        raise PasswordHashError(f"of an algorithm that is not known: {algorithm}")
    kind, size = _RABBITMQ_SIZES[algorithm]
    try:
        raw = _decode(text)
    except ValueError as error:
        raise PasswordHashError(f"not a password hash: {error}") from error
    if len(raw) != _RABBITMQ_SALT_BYTES + size:
        raise PasswordHashError(f"not a password hash: {len(raw)} bytes")
    return f"{kind}${_encode(raw[:_RABBITMQ_SALT_BYTES])}${_encode(raw[_RABBITMQ_SALT_BYTES:])}"


def write_rabbitmq_hash(kept: str) -> tuple[str, str]:
    """Return a hash as RabbitMQ's API tells it, with its algorithm; one that is no hash of RabbitMQ's as it is kept."""
    if kept.startswith("rabbitmq-"):
        kind, _, salt, key = parse_hash(kept)
        return _encode(salt + key), f"rabbit_password_hashing_{kind.partition('-')[2]}"
    return kept, f"lmq_{kept.partition('$')[0]}" if kept else ""


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
    if kind == _ARGON2:
        return write_argon2(_as_argon2(numbers, os.urandom(len(salt)), os.urandom(len(key))))
    parts = [kind, *(str(number) for number in numbers), _encode(os.urandom(len(salt))), _encode(os.urandom(len(key)))]
    return "$".join(parts)


def make_usual_decoy() -> str:
    """Return a decoy for a hash that `hash_password` makes; quick, since nothing is hashed."""
    return _write_scrypt(os.urandom(_SALT_BYTES), os.urandom(_KEY_BYTES))


def find_verifier(kept: str) -> Verifier | None:
    """Return what SCRAM needs, None where a hash is of another kind."""
    kind, numbers, salt, key = parse_hash(kept)
    return Verifier(numbers[0], salt, key) if kind == _SCRAM else None


class User:
    """One user: how the password is kept, and what the user may do."""

    __slots__ = ("is_disabled", "kept", "may", "name", "secret", "tags", "verifier")

    def __init__(self, name: str, may: Account, kept: str, secret: bytes = b"", tags: tuple[str, ...] = ()) -> None:
        self.is_disabled = False  # nothing lets the user in
        self.name = name
        self.may = may
        self.kept = kept  # a password hash, empty: no password is right
        self.verifier = find_verifier(kept) if kept else None
        self.tags = tags  # what the user may do at the admin API
        self.secret = secret  # what the user signs with, empty: nothing is

    def shut_out(self) -> User:
        """Return the user as one that has no password, secret or tag, and does not come in otherwise either."""
        found = User(self.name, self.may, "")
        found.is_disabled = True
        return found

    def comes_in_as(self, other: User) -> bool:
        """Return whether the same passwords and secrets are right, for a user in the same groups."""
        ours = (self.kept, self.secret, self.may.groups, self.is_disabled)
        return ours == (other.kept, other.secret, other.may.groups, other.is_disabled)

    def check(self, password: bytes) -> bool:
        """Return whether `password` is this user's; slow on purpose."""
        return check_password(password, self.kept)
