from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448

from gateway.auth.token_keys import KEYS_MAX, TokenKeys
from gateway.auth.tokens import TokenError
from gateway.settings.jwt import JwtSettings
from gateway.settings.models import SettingsError
from tests.support.tokens import (
    ALGORITHMS,
    SECRET,
    key_for,
    make,
    part,
    private_pem,
    public_jwk,
    public_pem,
    rsa_key,
    sign_by_hand,
)

NOW_MS = 1_000_000
CLAIMS = {"sub": "ann", "exp": 2_000}


@pytest.fixture
def files(tmp_path):
    """Return what writes a file, and says its path."""

    def write(raw, name="key"):
        path = tmp_path / name
        path.write_bytes(raw if isinstance(raw, bytes) else json.dumps(raw).encode())
        return path

    return write


def _settings(*algorithms, **more):
    if not {"public_key", "jwks", "secret_env"} & set(more):
        more.setdefault("secret", SECRET)
    return JwtSettings(algorithms=algorithms or ("HS256",), **more)


def _keys(*algorithms, **more):
    settings = _settings(*algorithms, **more)
    return TokenKeys(settings, settings.secret.encode())


def _refusal(keys, token):
    with pytest.raises(TokenError) as refused:
        keys.check(token, NOW_MS)
    return str(refused.value)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_proves_what_was_signed_with_its_key_and_nothing_else(files, algorithm):
    key = key_for(algorithm)
    more = {} if key == SECRET else {"public_key": files(public_pem(key))}
    keys = _keys(algorithm, **more)
    token = make(CLAIMS, algorithm)
    assert keys.check(token, NOW_MS).user == "ann"
    head, _, signature = token.split(b".")
    assert _refusal(keys, b".".join([head, part({**CLAIMS, "sub": "bob"}), signature])) == "its signature is wrong"
    assert "signature is wrong" in _refusal(keys, b".".join([head, part(CLAIMS), b"AAAA"]))
    assert _refusal(keys, b".".join([head, part(CLAIMS), b""])) == "its signature is wrong"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_keys_of_a_set_are_found_by_their_names(files, algorithm):
    keys = _keys(algorithm, jwks=files({"keys": [public_jwk(algorithm, kid="one", use="sig", alg=algorithm)]}))
    assert keys.check(make(CLAIMS, algorithm, kid="one"), NOW_MS).user == "ann"
    assert keys.check(make(CLAIMS, algorithm), NOW_MS).user == "ann"
    assert _refusal(keys, make(CLAIMS, algorithm, kid="two")) == "no key matches it"


def test_token_that_names_no_key_is_tried_with_each_that_fits(files):
    other = ec.generate_private_key(ec.SECP256R1())
    ours = public_jwk("ES256", kid="b")
    theirs = {**public_jwk("ES256"), "kid": "a"}
    numbers = other.public_key().public_numbers()
    theirs["x"], theirs["y"] = (part(number.to_bytes(32)).decode() for number in (numbers.x, numbers.y))
    keys = _keys("ES256", jwks=files({"keys": [theirs, ours]}))
    assert keys.check(make(CLAIMS, "ES256"), NOW_MS).user == "ann"
    assert _refusal(keys, make(CLAIMS, "ES256", kid="a")) == "its signature is wrong"


def test_unsigned_tokens_are_refused_however_they_say_so(files):
    keys = _keys("RS256", public_key=files(public_pem(rsa_key())))
    for algorithm in ("none", "None", "NONE", "", "hs256", "HS256", "RS384"):
        for signature in (b"", b"AAAA"):
            token = part({"alg": algorithm}) + b"." + part(CLAIMS) + b"." + signature
            assert _refusal(keys, token) == "its algorithm is not taken here"


def test_public_key_is_no_secret(files):
    pem = public_pem(rsa_key())
    forged = sign_by_hand({"alg": "HS256", "typ": "JWT"}, CLAIMS, pem)
    assert _refusal(_keys("RS256", public_key=files(pem)), forged) == "its algorithm is not taken here"
    both = _keys("RS256", "HS256", public_key=files(pem), secret=SECRET)
    assert _refusal(both, forged) == "its signature is wrong"
    assert both.check(make(CLAIMS), NOW_MS).user == "ann"
    assert both.check(make(CLAIMS, "RS256"), NOW_MS).user == "ann"
    named = _keys("RS256", "HS256", jwks=files({"keys": [public_jwk("RS256", kid="k")]}))
    assert _refusal(named, sign_by_hand({"alg": "HS256", "kid": "k"}, CLAIMS, pem)) == "no key matches it"
    with pytest.raises(SettingsError, match="is a key in PEM"):
        _keys("HS256", secret=pem.decode())


def test_audience_and_issuer_have_to_be_ours():
    keys = _keys(audience="lmq", issuer="https://id")
    for audience in ("lmq", ["other", "lmq"]):
        assert keys.check(make({**CLAIMS, "aud": audience, "iss": "https://id"}), NOW_MS).user == "ann"
    for claims in ({"aud": "other"}, {"aud": ["other"]}, {"aud": 7}, {"aud": [7]}, {"aud": None}, {}):
        assert "refused" in _refusal(keys, make({"iss": "https://id", **CLAIMS, **claims}))
    for issuer in ({"iss": "https://other"}, {"iss": "https://id/"}, {}):
        assert "refused" in _refusal(keys, make({"aud": "lmq", **CLAIMS, **issuer}))
    by_hand = sign_by_hand({"alg": "HS256"}, {**CLAIMS, "aud": "lmq", "iss": ["https://id"]}, SECRET.encode())
    assert "refused" in _refusal(keys, by_hand)
    assert "refused" in _refusal(_keys(), make({**CLAIMS, "aud": "another"}))


@pytest.mark.parametrize(
    ("head", "claims"),
    [
        ({}, b"not JSON"),
        ({}, b"[]"),
        ({}, b"[" * 5_000),
        ({}, b'{"sub": "ann", "exp": 1e999}'),
        ({}, b'{"sub": "ann", "exp": ' + b"9" * 5_000 + b"}"),
        ({}, b'{"sub": "\\ud800", "exp": 2000}'),
        ({"kid": 7}, CLAIMS),
        ({"kid": {"a": 1}}, CLAIMS),
        ({"crit": ["x"]}, CLAIMS),
        ({"b64": False, "crit": ["b64"]}, CLAIMS),
        ({}, {"sub": "ann", "exp": 1_000}),
        ({}, {"sub": "ann", "exp": 2_000, "nbf": 1_500}),
    ],
)
def test_token_that_is_signed_and_wrong_is_refused(head, claims):
    token = sign_by_hand({"alg": "HS256", **head}, claims, SECRET.encode())
    assert _refusal(_keys(), token)


def test_mark_is_another_one_with_another_key_or_other_demands(files):
    marks = [
        _keys(),
        _keys(secret=SECRET[::-1]),
        _keys(audience="lmq"),
        _keys(user_claim="name"),
        _keys("ES256", public_key=files(public_pem(key_for("ES256")))),
    ]
    assert len({keys.marks for keys in marks}) == len(marks)
    assert _keys().marks == _keys(leeway_s=5).marks == {_keys().check(make(CLAIMS), NOW_MS).mark}


def test_set_has_keys_of_other_things_which_are_left_alone(files):
    keys = [
        {"kty": "other"},
        public_jwk("RS256", use="enc"),
        {"kty": "OKP", "crv": "X25519", "x": "AAAA"},
        {"kty": "EC", "crv": "secp256k1", "x": "AAAA", "y": "AAAA"},
        public_jwk("ES384"),
        public_jwk("ES256", kid="k"),
    ]
    assert len(_keys("ES256", jwks=files({"keys": keys})).marks) == 1


PUBLIC_FAULTS = {
    "not there": (None, "cannot be read"),
    "empty": (b"", "no public key in PEM"),
    "not a key": (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no public key in PEM"),
    "too large": (b"x" * (1 << 20) + b"x", "is larger"),
    "private": (private_pem(key_for("ES256")), "private key"),
    "of another algorithm": (public_pem(key_for("ES384")), "for none of auth.jwt.algorithms; it could be for ES384"),
    "of another curve": (public_pem(ec.generate_private_key(ec.SECP256K1())), "of a kind"),
}


@pytest.mark.parametrize("case", PUBLIC_FAULTS)
def test_file_of_a_public_key_that_is_wrong_is_told(files, tmp_path, case):
    raw, why = PUBLIC_FAULTS[case]
    path = tmp_path / "none" if raw is None else files(raw)
    with pytest.raises(SettingsError, match=why) as told:
        _keys("ES256", public_key=path)
    assert "auth.jwt.public_key" in str(told.value)


def test_small_rsa_key_is_refused(files):
    with pytest.raises(SettingsError, match="1024 bits"):
        _keys("RS256", public_key=files(public_pem(rsa_key(1024))))


def test_other_curve_of_edwards_is_taken(files):
    key = ed448.Ed448PrivateKey.generate()
    keys = _keys("EdDSA", public_key=files(public_pem(key)))
    assert keys.check(make(CLAIMS, "EdDSA", key=key), NOW_MS).user == "ann"


SET_FAULTS = {
    "not JSON": (b"{", "is not JSON"),
    "deep": (b"[" * 100_000, "is not JSON"),
    "a list": ([], "no list of keys"),
    "no keys": ({"keys": {}}, "no list of keys"),
    "no objects": ({"keys": [7]}, "no list of keys"),
    "none": ({"keys": []}, "no key for one of"),
    "of others": ({"keys": [public_jwk("ES384")]}, "no key for one of"),
    "too many": ({"keys": [{}] * (KEYS_MAX + 1)}, "more than"),
    "private": ({"keys": [public_jwk("ES256", d="AAAA")]}, r"keys\[0\] is a private key"),
    "half": ({"keys": [{"kty": "EC", "crv": "P-256", "x": "AAAA"}]}, r"keys\[0\] is not a key"),
    "numbers": ({"keys": [{"kty": "EC", "crv": "P-256", "x": 7, "y": 7}]}, r"keys\[0\] is not a key"),
    "name": ({"keys": [public_jwk("ES256", kid=7)]}, "kid is not text"),
}


@pytest.mark.parametrize("case", SET_FAULTS)
def test_file_of_a_set_that_is_wrong_is_told(files, case):
    raw, why = SET_FAULTS[case]
    with pytest.raises(SettingsError, match=why) as told:
        _keys("ES256", jwks=files(raw))
    assert "auth.jwt.jwks" in str(told.value)


def test_short_secrets_are_refused_by_what_they_sign(files):
    with pytest.raises(SettingsError, match="HS256 needs 32 bytes"):
        _keys("HS256", secret="x" * 31)
    with pytest.raises(SettingsError, match="HS512 needs 64 bytes"):
        _keys("HS256", "HS512", secret="x" * 63)
    assert len(_keys("HS256", secret="x" * 32).marks) == 1
    short = {"kty": "oct", "k": part(b"x" * 31).decode()}
    with pytest.raises(SettingsError, match="no key for one of"):
        _keys("HS256", jwks=files({"keys": [short]}))
