from __future__ import annotations

import base64
import hashlib

import pytest

from gateway.auth.permissions import ALL
from gateway.auth.users import (
    PasswordHashError,
    User,
    check_password,
    hash_password,
    make_decoy,
    make_usual_decoy,
    parse_hash,
    read_rabbitmq_hash,
    write_rabbitmq_hash,
)


def test_password_is_right_against_its_own_hash_only():
    kept = hash_password("secret")
    assert kept.startswith("scrypt$16384$8$1$")
    assert check_password(b"secret", kept)
    assert not check_password(b"Secret", kept)


def test_hashes_of_one_password_differ():
    assert hash_password("secret") != hash_password("secret")


def test_pbkdf2_of_another_tool_is_taken():
    key = base64.b64encode(hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 1000, 32)).decode()
    kept = f"pbkdf2-sha256$1000$c2FsdA==${key}"
    assert check_password(b"secret", kept)
    assert not check_password(b"", kept)


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "plain",
        "md5$x",
        "scrypt$16384$8$1",
        "scrypt$16384$8$1$c2FsdA==$",
        "scrypt$a$8$1$c2FsdA==$c2FsdA==",
        "scrypt$1073741824$8$1$c2FsdA==$c2FsdA==",
        "scrypt$16384$8$1$***$c2FsdA==",
        "scrypt$16383$8$1$c2FsdA==$c2FsdA==",
        "scrypt$65536$1$1$c2FsdA==$c2FsdA==",
        "scrypt$16384$8$1$c2FsdA==$c2FsdA==$c2FsdA==",
        "pbkdf2-sha256$-1$c2FsdA==$c2FsdA==",
        "scram-sha-256$4096$c2FsdA==$c2FsdA==",
        "scram-sha-256$4095$c2FsdA==$" + "A" * 84 + "AA==",
        "scram-sha-256$10000001$c2FsdA==$" + "A" * 84 + "AA==",
        "pbkdf2-sha256$10000001$c2FsdA==$c2FsdA==",
    ],
)
def test_what_is_no_hash_is_refused(kept):
    with pytest.raises(PasswordHashError):
        check_password(b"secret", kept)


@pytest.mark.parametrize("numbers", ["2$1$1", "32768$1$1", "131072$8$1", "16384$8$16"])
def test_what_is_taken_for_a_hash_can_be_checked(numbers):
    assert not check_password(b"secret", f"scrypt${numbers}$c2FsdA==$c2FsdA==")


def test_user_is_checked_against_the_hash():
    user = User("a", ALL, hash_password("secret"))
    assert user.check(b"secret")
    assert not user.check(b"secre")


@pytest.mark.parametrize("kept", ["scrypt$1024$4$2$c2FsdA==$c2FsdGtleQ==", "pbkdf2-sha512$77$c2FsdA==$c2FsdA=="])
def test_decoy_is_as_dear_as_the_hash_and_holds_nothing_of_it(kept):
    decoy, true = parse_hash(make_decoy(kept)), parse_hash(kept)
    assert (decoy.kind, decoy.numbers) == (true.kind, true.numbers)
    assert (len(decoy.salt), len(decoy.key)) == (len(true.salt), len(true.key))
    assert decoy.salt != true.salt
    assert decoy.key != true.key


def test_usual_decoy_is_as_dear_as_a_hash_that_is_made_here():
    decoy, made = parse_hash(make_usual_decoy()), parse_hash(hash_password("x"))
    assert (decoy.kind, decoy.numbers) == (made.kind, made.numbers)
    assert (len(decoy.salt), len(decoy.key)) == (len(made.salt), len(made.key))
    assert make_usual_decoy() != make_usual_decoy()


def b64(raw):
    return base64.b64encode(raw).decode()


def test_hashes_of_mosquitto_are_taken():
    salt = b"saltsalt"
    slow = f"$7$101${b64(salt)}${b64(hashlib.pbkdf2_hmac('sha512', b'secret', salt, 101, 64))}"
    quick = f"$6${b64(salt)}${b64(hashlib.sha512(b'secret' + salt).digest())}"
    for kept in (slow, quick):
        assert check_password(b"secret", kept)
        assert not check_password(b"Secret", kept)
        assert not check_password(b"secret", make_decoy(kept))


@pytest.mark.parametrize("name", ["sha256", "sha512"])
def test_hashes_of_rabbitmq_are_taken_and_told_as_they_came(name):
    text, algorithm = b64(b"salt" + hashlib.new(name, b"saltsecret").digest()), f"rabbit_password_hashing_{name}"
    kept = read_rabbitmq_hash(text, algorithm)
    assert check_password(b"secret", kept)
    assert not check_password(b"Secret", kept)
    assert not check_password(b"secret", make_decoy(kept))
    assert write_rabbitmq_hash(kept) == (text, algorithm)


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [("", "rabbit_password_hashing_sha256"), ("c2FsdA==", "rabbit_password_hashing_sha512"), ("c2FsdA==", "md5")],
)
def test_what_is_no_hash_of_rabbitmq_is_refused(text, algorithm):
    with pytest.raises(PasswordHashError):
        read_rabbitmq_hash(text, algorithm)


def test_other_hashes_are_told_as_they_are_kept():
    assert write_rabbitmq_hash("scrypt$2$1$1$a$b") == ("scrypt$2$1$1$a$b", "lmq_scrypt")
    assert write_rabbitmq_hash("") == ("", "")
