from __future__ import annotations

import sys

import pytest

from gateway.auth.argon2_hashes import MISSING, Argon2Hash, parse_argon2, write_argon2
from gateway.auth.users import PasswordHashError, check_password, make_decoy, parse_hash

argon2 = pytest.importorskip("argon2")

KEPT = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1, hash_len=64, salt_len=64).hash("secret")
START, SALT, KEY = "$argon2id$v=19$m=64,t=1,p=1", "c2FsdHNhbHQ", "a2V5a2V5"


def test_password_is_right_against_the_hash_of_another_implementation():
    assert check_password(b"secret", KEPT)
    assert not check_password(b"Secret", KEPT)
    found = parse_argon2(KEPT)
    assert (found.memory_kib, found.passes, found.lanes, len(found.salt), len(found.key)) == (64, 1, 1, 64, 64)
    assert write_argon2(found) == KEPT


def test_numbers_count_and_lanes_too():
    for numbers in ({"time_cost": 3}, {"memory_cost": 128}, {"parallelism": 4}):
        kept = argon2.PasswordHasher(**{"time_cost": 1, "memory_cost": 64, "parallelism": 1, **numbers}).hash("x")
        assert check_password(b"x", kept)
        assert not check_password(b"y", kept)


def test_decoy_takes_as_long_and_no_password_is_right():
    decoy = make_decoy(KEPT)
    assert decoy != KEPT
    assert parse_hash(decoy)[:2] == parse_hash(KEPT)[:2]
    assert not check_password(b"secret", decoy)


@pytest.mark.parametrize(
    "kept",
    [
        "$argon2id$",
        f"{START}${SALT}",
        f"{START}${SALT}$",
        f"{START}${SALT}$***",
        f"{START}$c2FsdA${KEY}",
        f"{START}${SALT}$YQ",
        f"{START}${SALT}${KEY}$",
        f"{START}${SALT}${'A' * 2_000}",
        f"{START}${SALT}$AAAAA",
        f"$argon2id$v=16$m=64,t=1,p=1${SALT}${KEY}",
        f"$argon2id$m=64,t=1,p=1${SALT}${KEY}",
        f"$argon2id$v=19$m=64,t=0,p=1${SALT}${KEY}",
        f"$argon2id$v=19$m=64,t=1,p=0${SALT}${KEY}",
        f"$argon2id$v=19$m=64,t=1,p=9${SALT}${KEY}",
        f"$argon2id$v=19$m=64,t=-1,p=1${SALT}${KEY}",
        f"$argon2id$v=19$m=262145,t=1,p=1${SALT}${KEY}",
        f"$argon2id$v=19$m=262144,t=5,p=1${SALT}${KEY}",
        f"$argon2id$v=19$m=99999999,t=1,p=1${SALT}${KEY}",
    ],
)
def test_what_is_none_or_would_take_too_much_is_refused(kept):
    with pytest.raises(PasswordHashError, match="not a password hash"):
        check_password(b"secret", kept)


def test_missing_library_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "argon2.low_level", None)
    with pytest.raises(ValueError, match=r"lmq-gateway\[argon2\]"):
        parse_argon2(KEPT)
    assert "argon2" in MISSING


def test_what_is_taken_can_be_written_again():
    made = Argon2Hash(64, 1, 1, b"s" * 9, b"k" * 5)
    assert parse_argon2(write_argon2(made)) == made
