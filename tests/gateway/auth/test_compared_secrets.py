"""Secrets are compared in constant time: `hmac.compare_digest` decides alone, and no `==` is between secrets."""

from __future__ import annotations

import ast
import base64
import hashlib
import hmac

import pytest
from argon2 import PasswordHasher

from gateway.auth.api_tokens import ApiTokens
from gateway.auth.scram import ScramExchange
from gateway.auth.token_keys import TokenKeys
from gateway.auth.tokens import TokenError
from gateway.auth.users import check_password, find_verifier, hash_for_scram, hash_password
from gateway.settings.jwt import JwtSettings
from lmq.remoting.commands import Command
from lmq.remoting.signature import AccessKeys, is_signed_with, sign
from tests.support.logins import quick_hash
from tests.support.scram import ScramClient
from tests.support.sources import ROOT
from tests.support.stores import Rows
from tests.support.tokens import SECRET, make


def b64(raw):
    return base64.b64encode(raw).decode()


HASHES = {
    "scrypt": hash_password("secret"),
    "PBKDF2": quick_hash("secret"),
    "SCRAM": hash_for_scram("secret", 4_096),
    "argon2id": PasswordHasher(1, 64, 1).hash("secret"),
    "RabbitMQ's": f"rabbitmq-sha256${b64(b'salt')}${b64(hashlib.sha256(b'saltsecret').digest())}",
    "Mosquitto's": f"$6${b64(b'salt')}${b64(hashlib.sha512(b'secretsalt').digest())}",
}


def password_of(kept):
    return lambda word: lambda: check_password(word.encode(), kept)


def scram_proof(word):
    """Return what checks a proof that was made by a password."""
    exchange, client = ScramExchange(lambda _: find_verifier(HASHES["SCRAM"])), ScramClient("ann", word)
    exchange.take_final(client.final(exchange.answer_first(client.first)))
    return exchange.check


def api_token(word):
    tokens = ApiTokens(Rows())
    text = tokens.add("ci", "ann", ("read",), ends_at_ms=0, now_ms=0)
    return lambda: tokens.check(text if word == "secret" else text[:-1] + "!", 1) is not None


def json_web_token(word):
    keys = TokenKeys(JwtSettings(algorithms=("HS256",), secret=SECRET), SECRET.encode())
    token = make({"sub": "ann", "exp": 2_000}, key=SECRET if word == "secret" else "x" * 32)

    def check():
        try:
            return keys.check(token, 1_000).user == "ann"
        except TokenError:
            return False

    return check


def signature(word):
    command = Command(11, ext={"topic": "T"})
    sign(command, AccessKeys("ann", word))
    return lambda: is_signed_with(command, b"secret")


WAYS = {
    **{f"password, hash {name}": password_of(kept) for name, kept in HASHES.items()},
    "proof of SCRAM": scram_proof,
    "token of the API": api_token,
    "JSON Web Token": json_web_token,
    "signature of RocketMQ": signature,
}


@pytest.mark.parametrize("name", WAYS)
def test_what_compares_in_constant_time_decides_alone(monkeypatch, name):
    right, wrong = WAYS[name]("secret"), WAYS[name]("Secret")
    assert [right(), wrong()] == [True, False]
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: True)
    assert [right(), wrong()] == [True, True]  # nothing else tells them apart
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: False)
    assert [right(), wrong()] == [False, False]


SECRETS = {"password", "secret", "digest", "signature", "proof", "token", "key", "verifier", "kept"}
PUBLIC = {  # no secret that a client is to give: a word that everybody knows, what was kept then and now, a field
    ("gateway/auth/open_ways.py", "credentials.password == b'guest'"),
    ("gateway/auth/authenticator.py", "user.verifier == exchange.verifier"),
    ("gateway/auth/bearer.py", "key == b'auth'"),
}


def compared_by_equality(path):
    """Yield each `==` and `!=` of a file with an operand that is called as secrets are."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare) and any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops):
            for operand in (node.left, *node.comparators):
                name = operand.attr if isinstance(operand, ast.Attribute) else getattr(operand, "id", "")
                if name.strip("_") in SECRETS:
                    yield ast.unparse(node)


def test_no_secret_is_compared_by_equality():
    files = [*(ROOT / "gateway" / "auth").rglob("*.py"), ROOT / "lmq" / "remoting" / "signature.py"]
    assert len(files) > 50
    found = {(path.relative_to(ROOT).as_posix(), text) for path in files for text in compared_by_equality(path)}
    assert found == PUBLIC
