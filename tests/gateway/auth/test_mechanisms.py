from __future__ import annotations

import json
import time

import pytest

from core.cache_budget import CacheBudget
from gateway.auth.authenticator import Authenticator
from gateway.auth.bearer import BearerError
from gateway.auth.credentials import Credentials, Identity, Refusal
from gateway.auth.mechanisms import find_proof, offered_proofs
from gateway.auth.users import hash_for_scram
from gateway.settings.models import AuthSettings
from tests.support.logins import HandClock, HandWork, quick_hash
from tests.support.scram import ScramClient
from tests.support.tokens import SECRET, make

TOKENS = {"algorithms": ["HS256"], "secret": SECRET}
ALICE = {"alice": {"password_hash": hash_for_scram("secret", 4_096)}}
WHO = Credentials("amqp", None, None, "192.0.2.1:1")


def make_authenticator(**said):
    settings = AuthSettings.model_validate(said)
    return Authenticator(settings, {}, HandClock(lambda: int(time.time() * 1_000)), HandWork(), CacheBudget())


def token(**claims):
    return make({"sub": "ann", "exp": int(time.time()) + 60, **claims})


def check(proof):
    answers = []
    proof.check(WHO, lambda answer, _: answers.append(answer))
    (answer,) = answers
    return answer.user if isinstance(answer, Identity) else answer


@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ({}, ()),
        ({"users": {"bob": {"password_hash": quick_hash("x")}}}, ()),
        ({"users": ALICE}, ("SCRAM-SHA-256",)),
        ({"users": ALICE, "jwt": TOKENS}, ("SCRAM-SHA-256", "OAUTHBEARER")),
    ],
)
def test_mechanisms_are_offered_that_somebody_could_come_in_by(said, offered):
    assert offered_proofs(make_authenticator(**said)) == offered


def test_there_is_no_proof_by_other_mechanisms():
    authenticator = make_authenticator()
    for method in ("OAUTHBEARER", "SCRAM-SHA-1", "scram-sha-256", "PLAIN", ""):
        assert find_proof(method, authenticator) is None


def test_scram_goes_in_two_steps_and_proves_us_too():
    proof, client = find_proof("SCRAM-SHA-256", make_authenticator(users=ALICE)), ScramClient()
    assert proof.take(client.final(proof.take(client.first))) is None
    assert check(proof) == "alice"
    assert client.is_server(proof.final)


@pytest.mark.parametrize(("wanted", "answer"), [(b"", "ann"), (b"a=ann", "ann"), (b"a=bob", Refusal.WRONG)])
def test_a_token_is_for_its_own_user(wanted, answer):
    proof = find_proof("OAUTHBEARER", make_authenticator(jwt=TOKENS))
    assert proof.take(b"n," + wanted + b",\x01auth=Bearer " + token() + b"\x01\x01") is None
    assert check(proof) == answer
    assert proof.final == b""


def test_a_wrong_token_is_refused_and_a_password_is_none():
    authenticator = make_authenticator(jwt=TOKENS, mqtt_anonymous=True, amqp_guest=True)
    proof = find_proof("OAUTHBEARER", authenticator)
    proof.take(b"n,,\x01auth=Bearer " + token(exp=1) + b"\x01\x01")
    assert check(proof) is Refusal.WRONG
    assert json.loads(proof.complaint) == {"status": "invalid_token"}
    with pytest.raises(BearerError, match="not hold a token"):
        find_proof("OAUTHBEARER", authenticator).take(b"n,a=guest,\x01auth=Bearer guest\x01\x01")
